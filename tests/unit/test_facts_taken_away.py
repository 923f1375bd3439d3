"""What one missing fact must not turn into: each look-alike of a hang is told apart by a fact of its own, and without it nobody is accused."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from scenes import BARRIER, EXECUTOR, IDLE, MAIN, RAY_GET, RECV, Stacks, actor, core, process, ray_state, snapshot, task_id

from ray_rl_debug.analyze.coroutines import is_ray_call
from ray_rl_debug.analyze.nodes import NodeKind, kind_of, name_of
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.view import build_view
from ray_rl_debug.analyze.waits_system import system_edges
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Certainty, Report, State
from ray_rl_debug.model.snapshot import AsyncTask, Awaited, AwaitFrame, Local, OpenFile, OwnedTask, Process, Sample, Snapshot, Socket

MAIN_PID, FIRST, SECOND = 100, 200, 201
EPOLL, READ, WAIT, SLEEP, FUTEX = 232, 0, 61, 230, 202
JOINS = "Thread._wait_for_tstate_lock@threading.py:1139 Thread.join@threading.py:1123 main@app/train.py:55"
TAKES = "Condition.wait@threading.py:327 Buffer.take@app/buffer.py:27 learn@app/train.py:42 Thread.run@threading.py:982"
FILLS = "work@app/sampler.py:75 sample@app/train.py:35 Thread.run@threading.py:982"
POPEN = "Popen._try_wait@subprocess.py:2004 Popen.wait@subprocess.py:1264 main@app/train.py:9"


def sure(report: Report) -> list[int | None]:
    """Whom it accuses with more than *possible*."""
    return [w.pid for f in report.findings if f.certainty is not Certainty.POSSIBLE and f.root for w in f.who]


def awake(one: Process, slices: int, *, thread: int = 0) -> Process:
    """With one thread that was scheduled so many times during the window of 2 s."""
    threads = tuple(replace(t, run_slices=slices) if i == thread else t for i, t in enumerate(one.threads))
    return replace(one, threads=threads)


@pytest.mark.parametrize(
    ("slices", "keeps_gil", "motion"),
    [(6, False, Motion.FROZEN), (400, False, Motion.BUSY), (400, True, Motion.FROZEN)],
    ids=["asleep", "awake", "awake as another thread keeps the GIL"],
)
def test_who_waits_for_one_lock_sleeps(slices: int, keeps_gil: bool, motion: Motion) -> None:
    """Who computes is met at a lock too: on its way back into Python."""
    stacks = Stacks()
    one = process(stacks, FIRST, "python train.py", "work@app/train.py:73", kind="named", wchan="futex_do_wait", extra_threads=[("other", FILLS)])
    if keeps_gil:
        samples = tuple(
            Sample(at_s=s.at_s, threads=(s.threads[0], *(replace(t, owns_gil=True, active=True) for t in s.threads[1:]))) for s in one.samples
        )
        one = replace(one, samples=samples)
    assert build_view(snapshot(stacks.node([awake(one, slices)]))).seen[f"node1/{FIRST}"].motion is motion


@pytest.mark.parametrize(
    ("beside", "switches", "motion"),
    [(None, 8, Motion.FROZEN), (None, 900, Motion.BUSY), (6, None, Motion.UNKNOWN), (None, None, Motion.FROZEN)],
    ids=["its process slept", "its process was awake", "others were read", "nothing was read"],
)
def test_at_a_lock_how_often_it_was_scheduled_may_not_have_been_read(beside: int | None, switches: int | None, motion: Motion) -> None:
    stacks = Stacks()
    more = [("other", FILLS)] if beside is not None else []
    one = process(stacks, FIRST, "python train.py", "work@app/train.py:73", kind="named", wchan="futex_do_wait", extra_threads=more)
    one = replace(one, context_switches=switches, threads=(one.threads[0], *(replace(t, run_slices=beside) for t in one.threads[1:])))
    assert build_view(snapshot(stacks.node([one]))).seen[f"node1/{FIRST}"].motion is motion


@pytest.mark.parametrize(("slices", "certainty"), [(6, Certainty.LIKELY), (300, Certainty.POSSIBLE)], ids=["a heartbeat", "one that works"])
def test_the_thread_that_is_joined_waits_for_what_another_may_bring(slices: int, certainty: Certainty) -> None:
    stacks = Stacks()
    threads = [("learner", TAKES), ("sampler-0", FILLS), ("sampler-1", FILLS.replace(":75", ":69"))]
    one = process(stacks, FIRST, "python train.py", JOINS, kind="child", ppid=MAIN_PID, wchan="futex_do_wait", extra_threads=threads)
    named = {"learner": (3, "<Thread 7>"), "MainThread": (1, "<Thread 7>")}
    samples = []
    for sample in one.samples:
        told = [(t, named.get(t.name or "")) for t in sample.threads]
        samples.append(replace(sample, threads=tuple(replace(t, locals=(Local(frame=x[0], name="self", value=x[1]),)) if x else t for t, x in told)))
    sleepers = (replace(t, wchan="hrtimer_nanosleep", syscall=SLEEP) for t in one.threads[2:])
    one = awake(replace(one, samples=tuple(samples), threads=(*one.threads[:2], *sleepers)), slices, thread=2)
    parent = process(stacks, MAIN_PID, "python launch.py", POPEN, kind="named", wchan="do_wait", syscall=WAIT, arg0=FIRST)
    found = diagnose(snapshot(stacks.node([parent, one]))).findings
    assert [(f.id, f.certainty) for f in found] == [("RRD503", certainty)]


@pytest.mark.parametrize(("python", "accused"), [(None, True), ("3.11", False)], ids=["no Python", "Python, its stack not read"])
def test_a_child_of_long_ago_without_a_stack(python: str | None, accused: bool) -> None:
    stacks = Stacks()
    parent = process(stacks, MAIN_PID, "python train.py", POPEN, kind="named", wchan="do_wait", syscall=WAIT, arg0=FIRST)
    child = replace(
        process(stacks, FIRST, "tool", IDLE, kind="child", ppid=MAIN_PID, wchan="futex_do_wait", syscall=202),
        samples=(),
        start_time_s=100.0,
        python=python,
    )
    report = diagnose(snapshot(stacks.node([parent, child])))
    assert (FIRST in sure(report)) is accused
    assert (report.verdict.state is State.HANG) is accused


@pytest.mark.parametrize(("syscall", "state"), [(SLEEP, State.SLOW), (WAIT, State.SLOW), (FUTEX, State.HANG)], ids=["sleeps", "a new child", "waits"])
def test_a_child_without_a_stack_that_sleeps_may_wake(syscall: int, state: State) -> None:
    stacks = Stacks()
    parent = process(stacks, MAIN_PID, "python train.py", POPEN, kind="named", wchan="do_wait", syscall=WAIT, arg0=FIRST)
    child = replace(process(stacks, FIRST, "sleep", IDLE, kind="child", ppid=MAIN_PID, syscall=syscall), samples=(), start_time_s=198.0)
    assert diagnose(snapshot(stacks.node([parent, child]))).verdict.state is state


def to_service(quiet_s: float) -> Socket:
    return Socket(family="tcp", state="ESTABLISHED", local="10.0.0.1:50000", remote="203.0.113.7:443", fd=9, quiet_s=quiet_s)


@pytest.mark.parametrize(
    ("sockets", "is_hang"), [((to_service(900.0),), True), ((to_service(9.0),), False), ((), False)], ids=["silent", "at work", "not read"]
)
def test_a_library_waits_at_connections_that_may_not_have_been_read(sockets: tuple[Socket, ...], is_hang: bool) -> None:
    stacks = Stacks()
    asks = "_blocking@grpc/_channel.py:1162 __call__@grpc/_channel.py:1178 score@app/train.py:20"
    one = process(stacks, FIRST, "python train.py", asks, kind="named", wchan="do_epoll_wait", syscall=EPOLL, arg0=3, sockets=sockets)
    report = diagnose(snapshot(stacks.node([one])))
    assert (report.verdict.state is State.HANG) is is_hang
    assert report.findings[0].who[0].pid == FIRST


def stages(*texts: tuple[str, int | None], size: int, peer: int | None = None) -> Snapshot:
    """Ranks of one world of `size`: where each stands, and its rank. The first names the rank from which it receives."""
    stacks = Stacks()
    found = []
    for i, (text, rank) in enumerate(texts):
        named = (Local(frame=0, name="src", value=str(peer)),) if i == 0 and peer is not None else ()
        found.append(
            process(stacks, FIRST + i, "python train.py", f"{text} step@app/train.py:{30 + i}", kind="named", rank=rank, size=size, locals_=named)
        )
    return snapshot(stacks.node(found))


def test_a_recv_whose_peer_is_not_known_is_answered_by_the_only_other_rank() -> None:
    whole = stages((RECV, 0), (BARRIER, 1), size=2)
    assert sure(diagnose(whole)) != []
    assert diagnose(stages((RECV, 0), (BARRIER, 1), size=3)).findings[0].certainty is Certainty.POSSIBLE
    assert sure(diagnose(stages((RECV, 0), (BARRIER, 1), size=3))) == []


def test_a_send_to_a_rank_whose_own_peer_is_not_known_is_no_pair() -> None:
    """Rank 2 waits for rank 0, which waits for whom it does not tell: any of the others may be it."""
    send = RECV.replace("recv@", "send@")
    taken = stages((send, 2), (RECV, 0), (BARRIER, 1), (BARRIER, 3), size=4, peer=0)
    assert all(f.certainty is Certainty.POSSIBLE for f in diagnose(taken).findings if f.id == "RRD105" and {w.pid for w in f.who} == {200, 201})


READS = "read_order@app/sim.py:14 main@app/train.py:38"


def reader(stacks: Stacks, pid: int, reads: int, *writes: int, kind: str = "child") -> Process:
    files = [OpenFile(fd=3, path=f"pipe:[{reads}]", kind="pipe", inode=reads, writable=False)]
    files += [OpenFile(fd=4 + i, path=f"pipe:[{w}]", kind="pipe", inode=w, writable=True) for i, w in enumerate(writes)]
    one = process(stacks, pid, "python sim.py", READS, kind=kind, ppid=MAIN_PID, wchan="anon_pipe_read", syscall=READ, arg0=3)
    return replace(one, files=tuple(files))


def test_a_ring_through_inherited_copies_of_pipes_is_only_possible() -> None:
    """The second child holds copies of what the parent had. Whoever was gone before may have been the one to write."""
    stacks = Stacks()
    parent = replace(reader(stacks, MAIN_PID, 70, 71, 72, kind="named"), ppid=1)
    alone = diagnose(snapshot(stacks.node([parent, reader(stacks, FIRST, 71, 70)])))
    assert [(f.id, f.certainty) for f in alone.findings] == [("RRD502", Certainty.LIKELY)]
    dead = replace(reader(stacks, SECOND, 72), state="Z", samples=(), threads=(), files=())
    beside = diagnose(snapshot(stacks.node([parent, reader(stacks, FIRST, 71, 70), dead])))
    assert all(w != FIRST for w in sure(beside))
    copies = diagnose(snapshot(stacks.node([parent, reader(stacks, FIRST, 71, 70), reader(stacks, SECOND, 72, 70, 71)])))
    assert sure(copies) == []
    assert copies.findings[0].id == "RRD502"


def test_a_parent_whose_files_were_not_read_may_hold_the_end_of_a_pipe() -> None:
    stacks = Stacks()
    parent = replace(reader(stacks, MAIN_PID, 70, 71, 72, kind="named"), ppid=1)
    children = [reader(stacks, FIRST, 71, 72), reader(stacks, SECOND, 72, 71)]
    assert sure(diagnose(snapshot(stacks.node([replace(parent, files=()), *children])))) == [FIRST, SECOND]
    assert sure(diagnose(snapshot(stacks.node([replace(parent, files=None), *children])))) == []


WAITS = f"Event.wait@threading.py:629 Server.pull@app/server.py:30 {EXECUTOR} {MAIN}"
READS_FILE = f"Worker.train@app/worker.py:45 {EXECUTOR} {MAIN}"


@pytest.mark.parametrize(
    "taken", ["nothing", "the statistics of the worker", "those of the server", "the worker", "its call", "the calls of the server"]
)
def test_calls_that_wait_for_a_call_of_somebody_else(taken: str) -> None:
    """Two calls of the server wait for a third, which the worker at its file has not made yet."""
    stacks = Stacks()
    server = process(stacks, FIRST, "ray::Server.pull", IDLE, extra_threads=[("Dummy-1", WAITS), ("Dummy-2", WAITS)])
    worker = process(stacks, SECOND, "ray::Worker.train", READS_FILE, wchan="rpc_wait_bit_killable", syscall=READ, arg0=7)
    client = process(stacks, 202, "ray::Worker.train", f"{RAY_GET} Worker.train@app/worker.py:48 {EXECUTOR} {MAIN}", refs=[task_id(1)])
    driver = process(stacks, 50, "python train.py", f"{RAY_GET} main@train.py:9", kind="driver", refs=[task_id(4), task_id(3)])
    pull = OwnedTask(task_id=task_id(1), name="Server.pull", actor_id=f"{1:032x}")
    train = [OwnedTask(task_id=task_id(n), name="Worker.train", actor_id=f"{n:032x}") for n in (3, 4)]
    cores = {
        FIRST: core(FIRST, running=[1, 2], actor_number=1),
        SECOND: core(SECOND, running=[3], actor_number=3),
        202: core(202, running=[4], actor_number=4, owned=[pull]),
        50: replace(core(50, owned=train), kind="DRIVER"),
    }
    gone = {"its call": SECOND, "the calls of the server": FIRST}.get(taken)
    if gone is not None:
        cores[gone] = replace(cores[gone], running_task_ids=())
    cores.pop({"the statistics of the worker": SECOND, "those of the server": FIRST}.get(taken, 0), None)
    processes = [p for p in (driver, server, worker, client) if taken != "the worker" or p is not worker]
    actors = [actor(1, "Server", FIRST), actor(3, "Worker", SECOND), actor(4, "Worker", 202)]
    report = diagnose(snapshot(stacks.node(processes), ray_state(actors=actors, cores=list(cores.values()))))
    assert set(sure(report)) <= {SECOND}


ASKS = "readinto@socket.py:706 post@requests/api.py:115 score@app/train.py:20"
ASKED = Socket(family="tcp", state="ESTABLISHED", local="127.0.0.1:50000", remote="127.0.0.1:8000", fd=9)
ACCEPTED = Socket(family="tcp", state="ESTABLISHED", local="127.0.0.1:8000", remote="127.0.0.1:50000", fd=5)


@pytest.mark.parametrize(
    ("fd", "fds", "found"),
    [(9, None, ["203.0.113.7:443"]), (None, (9,), ["203.0.113.7:443"]), (None, None, ["unseen"]), (None, (9, 10), ["unseen"])],
    ids=["the call tells", "what it waits for tells", "not read", "several"],
)
def test_one_of_several_connections(fd: int | None, fds: tuple[int, ...] | None, found: list[str]) -> None:
    stacks = Stacks()
    sockets = [to_service(9.0), replace(to_service(9.0), fd=10, local="10.0.0.1:50011", remote="203.0.113.9:443")]
    one = process(stacks, FIRST, "python train.py", ASKS, kind="named", wchan="wait_woken", syscall=45, arg0=fd, sockets=sockets)
    one = replace(one, threads=(replace(one.threads[0], waits_on_fds=fds),))
    view = build_view(snapshot(stacks.node([one])))
    targets = [e.target for e in system_edges(view)]
    assert ["unseen" if kind_of(t) is NodeKind.UNSEEN else name_of(t) for t in targets] == found


@pytest.mark.parametrize(
    ("holders", "found"),
    [((MAIN_PID, FIRST, SECOND), "100"), ((FIRST,), "200"), ((FIRST, SECOND), "unseen")],
    ids=["the server and its children", "one child", "only copies"],
)
def test_copies_of_a_connection_in_forked_children(holders: tuple[int, ...], found: str) -> None:
    stacks = Stacks()
    client = process(stacks, 300, "python ask.py", ASKS, kind="named", wchan="wait_woken", syscall=45, arg0=9, sockets=[ASKED])
    server = process(stacks, MAIN_PID, "python serve.py", "serve@app/serve.py:3", kind="named", ppid=1)
    children = [process(stacks, pid, "python serve.py", "work@app/serve.py:9", kind="child", ppid=MAIN_PID) for pid in (FIRST, SECOND)]
    family = [replace(p, sockets=(ACCEPTED,) if p.pid in holders else ()) for p in (server, *children)]
    (edge,) = system_edges(build_view(snapshot(stacks.node([client, *family]))))
    assert ("unseen" if kind_of(edge.target) is NodeKind.UNSEEN else edge.target.rpartition("/")[2]) == found


LOOP = "select@selectors.py:468 _run_once@asyncio/base_events.py:1884 run_forever@asyncio/base_events.py:607 run@threading.py:982"


@pytest.mark.parametrize(("kind", "accused"), [(None, [FIRST, SECOND]), ("sleep", [FIRST, SECOND]), ("condition", [])])
def test_an_idle_server_one_of_whose_coroutines_was_not_read(kind: str | None, accused: list[int]) -> None:
    """None of those that were read has the request. A heartbeat that sleeps is no sign of others."""
    stacks = Stacks()
    chain = (AwaitFrame(function="serve_forever", file="app/api.py", line=12),)
    task = AsyncTask(address=1, name="Task-1", chain=chain, awaited=Awaited(kind=kind or "", delay_s=900.0), stable=True, tid=SECOND)
    client = process(stacks, FIRST, "python ask.py", ASKS, kind="named", wchan="wait_woken", syscall=45, arg0=9, sockets=[ASKED])
    server = process(stacks, SECOND, "python api.py", LOOP, kind="child", sockets=[ACCEPTED], async_tasks=(task,) if kind else ())
    report = diagnose(snapshot(stacks.node([client, server])))
    assert [pid for pid in sure(report) if any(f.id == "RRD502" for f in report.findings)] == accused


@pytest.mark.parametrize(
    ("functions", "is_call"),
    [
        (["run_async_func_or_coro_in_event_loop.<locals>.async_func"], True),
        (["ray/util/tracing/tracing_helper.py"], True),
        (["app/agent.py"], False),
        ([], False),
    ],
    ids=["Ray's begin", "Ray's wrapper", "the program's own", "nothing"],
)
def test_a_coroutine_that_is_a_call_of_ray(functions: list[str], is_call: bool) -> None:
    """Its outermost coroutine may not have been read."""
    chain = tuple(AwaitFrame(function=f, file=f if "/" in f else None) for f in functions)
    assert is_ray_call(AsyncTask(address=1, name="Task-1", chain=(*chain, AwaitFrame(function="Agent.run", file="app/agent.py")))) is is_call


@pytest.mark.parametrize(
    ("text", "accused"), [(IDLE, []), (f"Sampler.play@app/sampler.py:5 {EXECUTOR} {MAIN}", [FIRST])], ids=["no frame", "its own code"]
)
def test_a_call_behind_one_that_shows_no_frame(text: str, accused: list[int]) -> None:
    """A generator is held back by whoever takes what it makes. None of its kind has finished, or that was not read."""
    stacks = Stacks()
    driver = process(stacks, 50, "python train.py", f"{RAY_GET} main@train.py:9", kind="driver", refs=[task_id(2)])
    sampler = process(stacks, FIRST, "ray::Sampler.play", text)
    owned = [OwnedTask(task_id=task_id(n), name=name, actor_id=f"{1:032x}") for n, name in ((1, "Sampler.play"), (2, "Sampler.state"))]
    cores = [replace(core(50, owned=owned), kind="DRIVER"), core(FIRST, running=[1], actor_number=1)]
    report = diagnose(snapshot(stacks.node([driver, sampler]), ray_state(actors=[actor(1, "Sampler", FIRST)], cores=cores)))
    assert sure(report) == accused
    assert [w.pid for w in report.findings[0].who] == [FIRST]


@pytest.mark.parametrize(("path", "unseen"), [("/dev/ptmx", True), ("/dev/kmsg", False)])
def test_a_reader_of_a_terminal_waits_for_somebody_on_it(path: str, unseen: bool) -> None:
    """The kernel has it sleep as at a socket, and nobody records who is on the terminal."""
    stacks = Stacks()
    one = process(stacks, FIRST, "python tool.py", "run@app/tool.py:9", kind="named", wchan="wait_woken", syscall=READ, arg0=3)
    one = replace(one, files=(OpenFile(fd=3, path=path, kind="device"),))
    edges = list(system_edges(build_view(snapshot(stacks.node([one])))))
    assert [kind_of(e.target) is NodeKind.UNSEEN for e in edges] == [True] * unseen
