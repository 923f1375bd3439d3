"""Waits whose end may well go on by itself: asleep for a time, at work through a child, between two programs. Called hung only where it cannot be."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from scenes import ALL_REDUCE, EXECUTOR, MAIN, RAY_GET, Stacks, actor, core, process, ray_state, snapshot, task_id

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Cause, Certainty, Report, State
from ray_rl_debug.model.snapshot import AsyncTask, Awaited, AwaitFrame, OpenFile, OwnedTask, Process, Socket

READ, WRITE, OPEN, WAIT, SLEEP, RECV, ACCEPT, POLL = 0, 1, 257, 61, 230, 45, 43, 7
RANK, END = 100, 200
STEP = f"Trainer.step@app/trainer.py:20 {EXECUTOR} {MAIN}"
PIPE = OpenFile(fd=1, path="pipe:[77]", kind="pipe", inode=77)
POPEN = f"Popen._try_wait@subprocess.py:2004 Popen.wait@subprocess.py:1264 Trainer.upload@app/trainer.py:9 {STEP}"
CLIENT = Socket(family="tcp", state="ESTABLISHED", local="127.0.0.1:50000", remote="127.0.0.1:8000", fd=9)
LISTENER = Socket(family="tcp", state="LISTEN", local="127.0.0.1:8000", fd=3)
SERVER = Socket(family="tcp", state="ESTABLISHED", local="127.0.0.1:8000", remote="127.0.0.1:50000", fd=5)
LOOP = "select@selectors.py:468 _run_once@asyncio/base_events.py:1884 run_forever@asyncio/base_events.py:607 run@threading.py:982"
ASKS = f"SocketIO.readinto@socket.py:706 post@requests/api.py:115 Trainer.verify@app/trainer.py:61 {STEP}"


def report(stacks: Stacks, *processes: Process) -> Report:
    """With a second rank that waits for the first in an all_reduce."""
    other = process(stacks, 101, "ray::Trainer.step", f"{ALL_REDUCE} {STEP}", rank=1, size=2)
    return diagnose(snapshot(stacks.node([*processes, other])))


def sure(found: Report) -> bool:
    return found.verdict.state is State.HANG and any(f.certainty is not Certainty.POSSIBLE and f.cause is Cause.BLOCKED_IO for f in found.findings)


@pytest.mark.parametrize(
    ("call", "sleeps", "age_s", "is_hang"),
    [(READ, False, 9.0, True), (READ, True, 9.0, False), (READ, True, 90.0, False), (WRITE, True, 9.0, False), (WRITE, False, 9.0, True)],
    ids=["it does nothing", "it pauses between two lines", "it lives long, and pauses", "it sleeps at a full pipe", "it waits at a full pipe"],
)
def test_the_other_end_of_a_pipe(call: int, sleeps: bool, age_s: float, is_hang: bool) -> None:
    stacks = Stacks()
    rank = process(stacks, RANK, "ray::Trainer.step", f"Trainer.upload@app/trainer.py:9 {STEP}", rank=0, size=2, syscall=call, arg0=1)
    rank = replace(rank, files=(replace(PIPE, writable=call == WRITE),))
    text, at = ("main@app/upload.py:4", SLEEP) if sleeps else ("recv@socket.py:5 main@app/upload.py:7", RECV)
    child = process(stacks, END, "python upload.py", text, kind="child", ppid=RANK, syscall=at)
    child = replace(child, files=(replace(PIPE, writable=call == READ),), start_time_s=200.0 - age_s, read_bytes=0, written_bytes=0)
    assert sure(report(stacks, rank, child)) is is_hang


def napping(delay_s: float, name: str, *, began: str = "aiohttp/web_protocol.py") -> AsyncTask:
    chain = (AwaitFrame(function="start", file=began, line=3), AwaitFrame(function=name, file="app/api.py", line=12))
    return AsyncTask(address=1, name="Task-1", chain=chain, awaited=Awaited(kind="sleep", delay_s=delay_s), stable=True, tid=END)


@pytest.mark.parametrize(
    ("tasks", "is_hang"),
    [
        ((), True),
        ((napping(9.0, "Api.model"),), False),
        ((napping(3600.0, "Api.model"),), True),
        ((napping(5.0, "Api.heartbeat"),), True),
        ((napping(5.0, "Api.until_all_finished", began="app/api.py"),), True),
    ],
    ids=["no coroutine", "an answer is under way", "one that sleeps for an hour", "a heartbeat", "a loop of its own that looks"],
)
def test_the_other_end_of_a_connection(tasks: tuple[AsyncTask, ...], is_hang: bool) -> None:
    stacks = Stacks()
    rank = process(stacks, RANK, "ray::Trainer.step", ASKS, rank=0, size=2, sockets=[CLIENT], syscall=RECV, arg0=9)
    api = process(stacks, END, "python api.py", LOOP, kind="child", sockets=[SERVER], async_tasks=tasks)
    assert sure(report(stacks, rank, api)) is is_hang


ANSWERS = "handle@app/api.py:30 Handler.do_GET@app/api.py:20 handle_one_request@http/server.py:421 process_request_thread@socketserver.py:683"
SERVES = ("select@selectors.py:415 serve_forever@socketserver.py:232 main@app/api.py:40", POLL)
LISTENS = ("accept@socket.py:294 serve@app/api.py:9", ACCEPT)


@pytest.mark.parametrize(
    ("server", "handler", "named"),
    [
        (LISTENS, None, [END]),
        (LISTENS, "wait@threading.py:629 handle@app/api.py:30", [END]),
        (LISTENS, "_try_wait@subprocess.py:2004 wait@subprocess.py:1264 handle@app/api.py:30", [END]),
        (("read_cache@app/cache.py:4 serve@app/api.py:9", READ), None, [END]),
        (SERVES, f"wait@threading.py:629 {ANSWERS}", [END]),
    ],
    ids=["it only listens", "a thread waits for an event", "a thread waits for a program", "it reads a file", "what answers waits for an event"],
)
def test_a_server_is_named_alone_where_it_stands_for_a_reason_of_its_own(server: tuple[str, int], handler: str | None, named: list[int]) -> None:
    stacks = Stacks()
    rank = process(stacks, RANK, "ray::Trainer.step", ASKS, rank=0, size=2, sockets=[CLIENT], syscall=RECV, arg0=9)
    handlers = [("handler", handler)] if handler is not None else []
    api = process(
        stacks, END, "python api.py", server[0], kind="child", sockets=[LISTENER, SERVER], syscall=server[1], arg0=3, extra_threads=handlers
    )
    found = report(stacks, rank, api)
    (root,) = (f for f in found.findings if f.root)
    assert (root.cause, [w.pid for w in root.who]) == (Cause.BLOCKED_IO, named)
    if handler is not None and "subprocess.py" in handler:
        assert "thread handler of api.py (node1 pid 200) waits for a child process in handle (api.py:30), and does not" in root.summary
    assert handler is None or any("handle (api.py:30)" in e.text for e in root.evidence)


def test_a_handler_that_sleeps_does_not_wait_for_whoever_asked_it() -> None:
    stacks = Stacks()
    asks = "SocketIO.readinto@socket.py:706 urlopen@urllib/request.py:216 ask@app/client.py:2"
    client = process(stacks, RANK, "python client.py", asks, kind="named", sockets=[CLIENT], syscall=RECV, arg0=9)
    api = process(stacks, END, "python api.py", ANSWERS, kind="named", sockets=[SERVER], syscall=SLEEP, wchan="hrtimer_nanosleep")
    found = diagnose(snapshot(stacks.node([client, api])))
    assert [w.pid for f in found.findings for w in f.who] == [END]


@pytest.mark.parametrize(
    ("looks", "is_there", "is_hang"),
    [(3, True, True), (2, False, False), (3, False, False), (0, True, True)],
    ids=["the same thread all the time", "ended between two looks", "ended after the last look", "no thread at all"],
)
def test_a_server_that_joins_one_thread_after_the_other_goes_on(looks: int, is_there: bool, is_hang: bool) -> None:
    """The thread that it joined is not there any more: it has come to the next one. `looks`: at how many of three the thread was met."""
    stacks = Stacks()
    joins = "_wait_for_tstate_lock@threading.py:1139 join@threading.py:1119 server_close@socketserver.py:709 main@app/api.py:40"
    reads = "readinto@socket.py:706 handle@app/api.py:20 process_request_thread@socketserver.py:683"
    one = process(stacks, RANK, "python api.py", joins, kind="named", syscall=202, wchan="futex_do_wait", extra_threads=[("handler", reads)])
    samples = tuple(s if i < looks else replace(s, threads=s.threads[:1]) for i, s in enumerate(one.samples))
    one = replace(one, samples=samples, threads=one.threads if is_there and looks else one.threads[:1])
    found = diagnose(snapshot(stacks.node([one])))
    assert (found.verdict.state is State.HANG) is is_hang
    assert is_hang or all(f.certainty is Certainty.POSSIBLE for f in found.findings)


@pytest.mark.parametrize(
    ("fd", "call", "named"), [(5, RECV, [RANK]), (7, RECV, []), (5, SLEEP, [])], ids=["at the client's connection", "at another", "it does not read"]
)
def test_a_server_whose_threads_read_at_who_asks_has_no_request_in_hand(fd: int, call: int, named: list[int]) -> None:
    stacks = Stacks()
    client = process(stacks, RANK, "python client.py", ASKS, kind="named", sockets=[CLIENT], syscall=RECV, arg0=9)
    handler = [("handler", "readinto@socket.py:706 answer@app/api.py:20 process_request_thread@socketserver.py:683")]
    held = [SERVER, LISTENER, Socket(family="tcp", state="ESTABLISHED", local="127.0.0.1:8000", remote="127.0.0.1:50009", fd=7)]
    api = process(stacks, END, "python api.py", LISTENS[0], kind="child", sockets=held, syscall=ACCEPT, arg0=3, extra_threads=handler)
    reads = replace(api.threads[1], wchan=None, syscall=call, syscall_arg0=fd)
    found = diagnose(snapshot(stacks.node([client, replace(api, threads=(api.threads[0], reads))])))
    assert [link.target.pid for link in found.links if link.waiter.pid == END] == named
    if named:
        (root,) = (f for f in found.findings if f.root)
        assert END not in [w.pid for w in root.who]


SERIAL = "readinto@socket.py:706 handle_one_request@http/server.py:399 serve_forever@socketserver.py:233 main@app/api.py:40"
OTHER = Socket(family="tcp", state="ESTABLISHED", local="127.0.0.1:50001", remote="127.0.0.1:8000", fd=4)


@pytest.mark.parametrize(("accepted", "named"), [(False, [300]), (True, [])], ids=["one after the other", "both at once"])
def test_a_server_that_takes_one_client_after_the_other_waits_for_the_one_that_it_has(accepted: bool, named: list[int]) -> None:
    """What a server reads nobody owes it; but while it reads, the next client stands before its door."""
    stacks = Stacks()
    client = process(stacks, RANK, "python client.py", ASKS, kind="named", sockets=[CLIENT], syscall=RECV, arg0=9)
    probe = process(stacks, 300, "python probe.py", "look@app/probe.py:3", kind="named", sockets=[OTHER], syscall=OPEN, wchan="wait_for_partner")
    held = [
        LISTENER,
        Socket(family="tcp", state="ESTABLISHED", local="127.0.0.1:8000", remote="127.0.0.1:50001", fd=6),
        *([SERVER] if accepted else []),
    ]
    api = process(stacks, END, "python api.py", SERIAL, kind="named", sockets=held, syscall=RECV, arg0=6)
    found = diagnose(snapshot(stacks.node([client, api, probe])))
    assert [link.target.pid for link in found.links if link.waiter.pid == END] == named
    assert accepted or [w.pid for f in found.findings if f.root for w in f.who] == [300]


@pytest.mark.parametrize(("wakes_in_s", "is_hang"), [(3.5, False), (3600.0, True), (None, True)], ids=["some seconds", "an hour", "not known"])
def test_a_server_that_listens_goes_on_with_the_thread_that_has_the_request(wakes_in_s: float | None, is_hang: bool) -> None:
    stacks = Stacks()
    client = process(stacks, RANK, "python client.py", ASKS, kind="named", sockets=[CLIENT], syscall=RECV, arg0=9)
    handler = [("handler", "answer@app/api.py:30 run@threading.py:982")]
    api = process(stacks, END, "python api.py", LISTENS[0], kind="child", sockets=[LISTENER, SERVER], syscall=ACCEPT, arg0=3, extra_threads=handler)
    sleeps = replace(api.threads[1], wchan="hrtimer_nanosleep", syscall=SLEEP, wakes_in_s=wakes_in_s)
    found = diagnose(snapshot(stacks.node([client, replace(api, threads=(api.threads[0], sleeps))])))
    assert sure(found) is is_hang
    assert is_hang or all(f.certainty is Certainty.POSSIBLE for f in found.findings)


@pytest.mark.parametrize(("wakes_in_s", "is_hang"), [(3.5, False), (3600.0, True), (None, True)], ids=["some seconds", "an hour", "not known"])
def test_a_server_that_sleeps_goes_on_when_its_clock_says_so(wakes_in_s: float | None, is_hang: bool) -> None:
    stacks = Stacks()
    asks = "SocketIO.readinto@socket.py:706 urlopen@urllib/request.py:216 ask@app/client.py:2"
    client = process(stacks, RANK, "python client.py", asks, kind="named", sockets=[CLIENT], syscall=RECV, arg0=9)
    api = process(stacks, END, "python api.py", ANSWERS, kind="named", sockets=[SERVER], syscall=SLEEP, wchan="hrtimer_nanosleep")
    api = replace(api, threads=tuple(replace(t, wakes_in_s=wakes_in_s) for t in api.threads))
    assert sure(diagnose(snapshot(stacks.node([client, api])))) is is_hang


def test_a_server_whose_own_coroutine_waits_for_an_event_is_the_one_to_name() -> None:
    stacks = Stacks()
    rank = process(stacks, RANK, "ray::Trainer.step", ASKS, rank=0, size=2, sockets=[CLIENT], syscall=RECV, arg0=9)
    stuck = replace(napping(0.0, "Api.generate"), awaited=Awaited(kind="condition", address=9))
    found = report(stacks, rank, process(stacks, END, "python api.py", LOOP, kind="child", sockets=[SERVER], async_tasks=(stuck,)))
    (root,) = (f for f in found.findings if f.root)
    assert (root.cause, [w.pid for w in root.who]) == (Cause.ASYNCIO_STUCK, [END])


@pytest.mark.parametrize(
    ("child_age_s", "grandchild_cpu_s", "is_hang"),
    [(30.0, 0.0, True), (0.4, 0.0, False), (None, 0.0, False), (30.0, 1.9, False)],
    ids=["the same program all the time", "one that has just begun", "between two programs", "its compiler works"],
)
def test_a_rank_that_runs_programs(child_age_s: float | None, grandchild_cpu_s: float, is_hang: bool) -> None:
    stacks = Stacks()
    found = [process(stacks, RANK, "ray::Trainer.step", POPEN, rank=0, size=2, syscall=WAIT, arg0=END)]
    if child_age_s is not None:
        child = process(stacks, END, "g++", MAIN, kind="child", ppid=RANK, syscall=RECV)
        found.append(replace(child, samples=(), start_time_s=200.0 - child_age_s))
        below = process(stacks, 300, "cc1plus", MAIN, kind="child", ppid=END, cpu_s=grandchild_cpu_s, state="R" if grandchild_cpu_s else "S")
        found.append(replace(below, samples=(), start_time_s=200.0 - child_age_s))
    assert sure(report(stacks, *found)) is is_hang


@pytest.mark.parametrize(("producer", "is_hang"), [("sleep", False), ("lock", True)])
def test_the_thread_that_fills_a_queue(producer: str, is_hang: bool) -> None:
    stacks = Stacks()
    main = f"Queue.get@queue.py:171 Trainer.next@app/trainer.py:7 {STEP}"
    rank = process(stacks, RANK, "ray::Trainer.step", main, rank=0, size=2, extra_threads=[("producer", "produce@app/data.py:4")])
    call = SLEEP if producer == "sleep" else None
    rank = replace(rank, threads=(rank.threads[0], replace(rank.threads[1], syscall=call, wchan=None if call else "futex_do_wait")))
    assert (report(stacks, rank).verdict.state is State.HANG) is is_hang


def call_of(number: int, function: str, awaited: Awaited, *, stable: bool) -> AsyncTask:
    """A call of Ray on the loop of an async actor."""
    ray = AwaitFrame(function="run_async_func_or_coro_in_event_loop.<locals>.async_func")
    chain = (ray, AwaitFrame(function=function, file="app/engine.py", line=5))
    return AsyncTask(address=number, name=f"Task-{number}", chain=chain, awaited=awaited, stable=stable)


def asked_by_a_client(stacks: Stacks, engine: Process, *, runs: int) -> Report:
    """A client waits for call 1 of the engine, while the engine runs call `runs`."""
    client = process(stacks, RANK, "ray::Client.ask", f"{RAY_GET} Client.ask@app/client.py:5 {EXECUTOR} {MAIN}", refs=[task_id(1)])
    owned = OwnedTask(task_id=task_id(1), name="Engine.generate", actor_id=f"{1:032x}")
    cores = [core(END, running=[runs], actor_number=1), core(RANK, running=[9], actor_number=2, owned=[owned])]
    state = ray_state(actors=[actor(1, "Engine", END), actor(2, "Client", RANK)], cores=cores)
    return diagnose(snapshot(stacks.node([engine, client]), state))


@pytest.mark.parametrize(("goes_on", "is_hang"), [(True, False), (False, True)], ids=["an update goes on", "nothing goes on"])
def test_calls_that_wait_until_another_call_of_the_same_actor_has_ended(goes_on: bool, is_hang: bool) -> None:
    stacks = Stacks()
    gate = call_of(1, "Engine.generate", Awaited(kind="condition", address=7), stable=True)
    update = call_of(2, "Engine.update", Awaited(kind="sleep", delay_s=1.0), stable=False)
    tasks = (gate, update) if goes_on else (gate,)
    engine = process(stacks, END, "ray::Engine.generate", MAIN, extra_threads=[("AsyncIO Thread: default", LOOP)], async_tasks=tasks)
    assert (asked_by_a_client(stacks, engine, runs=1).verdict.state is State.HANG) is is_hang


def test_a_request_of_an_engine_that_waits_elsewhere_is_not_at_a_gate() -> None:
    """Ray's own wrapper around a call is named ``_resume_span``."""
    stacks = Stacks()
    wrapper = AwaitFrame(function="_inject_tracing.<locals>._resume_span", file="ray/util/tracing/tracing_helper.py", line=520)
    waits = call_of(1, "Engine.generate", Awaited(kind="condition", address=7), stable=True)
    waits = replace(waits, chain=(waits.chain[0], wrapper, waits.chain[1]))
    engine = process(stacks, END, "ray::Engine.generate", MAIN, extra_threads=[("AsyncIO Thread: default", LOOP)], async_tasks=(waits,))
    assert [f.cause for f in asked_by_a_client(stacks, engine, runs=1).findings] == [Cause.ASYNCIO_STUCK]


@pytest.mark.parametrize(("method", "is_hang"), [("__init__", False), ("serve", True)], ids=["it is set up", "it serves forever"])
def test_calls_that_stand_behind_one_that_sleeps_again_and_again(method: str, is_hang: bool) -> None:
    stacks = Stacks()
    engine = process(stacks, END, f"ray::Engine.{method}", f"load@app/engine.py:7 Engine.{method}@app/engine.py:3 {EXECUTOR} {MAIN}", syscall=SLEEP)
    assert (asked_by_a_client(stacks, engine, runs=5).verdict.state is State.HANG) is is_hang
