"""Processes that wait for each other: a parent for its child and the child for a pipe; a driver for an actor and the actor for the driver."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from scenes import ALL_REDUCE, EXECUTOR, MAIN, RAY_GET, Stacks, actor, core, process, ray_state, snapshot, task_id

from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.roots import Root
from ray_rl_debug.analyze.solve import Outlook
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Cause, Certainty, State
from ray_rl_debug.model.snapshot import AsyncTask, Awaited, AwaitFrame, OpenFile, OwnedTask, Snapshot, Socket
from ray_rl_debug.rules.rings import Ring, remedy_of

DRIVER, PARENT, CHILD = 1, 100, 200


def grader(*, child_writes: bool = True, reader: float | None = None) -> Snapshot:
    """An actor that waits for its child, which writes to (or reads from) a pipe of theirs; beside it, maybe, a thread that reads."""
    stacks = Stacks()
    waits = f"Popen._try_wait@subprocess.py:2004 Popen.wait@subprocess.py:1264 Grader.check@app/grader.py:7 {EXECUTOR} {MAIN}"
    end = OpenFile(fd=3, path="pipe:[77]", kind="pipe", inode=77, writable=not child_writes)
    beside = [] if reader is None else [("drain", "drain@app/grader.py:3")]
    parent = process(stacks, PARENT, "ray::Grader.check", waits, syscall=61, arg0=CHILD, wchan="do_wait", extra_threads=beside)
    parent = replace(parent, files=(end,))
    if reader is not None:
        parent = replace(parent, threads=(parent.threads[0], *(replace(t, state="R", wchan=None, cpu_s=reader) for t in parent.threads[1:])))
    call, at = (1, "pipe_write") if child_writes else (0, "pipe_read")
    mine = OpenFile(fd=1, path="pipe:[77]", kind="pipe", inode=77, writable=child_writes)
    child = process(stacks, CHILD, "python", "main@app/check.py:2", kind="child", ppid=PARENT, syscall=call, wchan=at)
    child = replace(child, files=(mine,), threads=(replace(child.threads[0], syscall_arg0=1), *child.threads[1:]))
    ray = ray_state(actors=[actor(0, "Grader", PARENT)], cores=[core(PARENT, running=[1], actor_number=0)])
    return snapshot(stacks.node([parent, child]), ray)


@pytest.mark.parametrize("child_writes", [True, False], ids=["a full pipe that nobody reads", "input that nobody sends"])
def test_parent_and_child_wait_for_each_other(child_writes: bool) -> None:
    report = diagnose(grader(child_writes=child_writes))
    (finding,) = (f for f in report.findings if f.root)
    assert (report.verdict.state, finding.id, finding.cause) == (State.HANG, "RRD502", Cause.BLOCKED_IO)
    assert {w.pid for w in finding.who} == {PARENT, CHILD}


def test_a_thread_that_reads_the_pipe_may_free_them() -> None:
    report = diagnose(grader(reader=1.9))
    assert report.verdict.state is not State.HANG
    assert all(f.certainty is Certainty.POSSIBLE for f in report.findings)


LOCK, SLOW = "handle@app/main.py:20 Thread.run@threading.py:982", "time_the_tool@app/tool.py:4 handle@app/main.py:21 Thread.run@threading.py:982"


@pytest.mark.parametrize(
    ("threads", "polls", "cause", "who"),
    [
        ([LOCK], False, Cause.LOCK_DEADLOCK, {DRIVER}),
        ([LOCK, SLOW], False, Cause.BLOCKED_IO, {PARENT}),
        ([SLOW], False, Cause.BLOCKED_IO, {PARENT}),
        ([SLOW], True, Cause.BLOCKED_IO, {PARENT}),
    ],
    ids=["its handler stands at a lock", "one handler at a lock, another in a slow tool", "its handler is in a slow tool", "a coroutine of it polls"],
)
def test_a_driver_that_serves_the_actor_it_waits_for(threads: list[str], polls: bool, cause: Cause, who: set[int]) -> None:
    stacks = Stacks()
    client = Socket(family="tcp", state="ESTABLISHED", local="127.0.0.1:50000", remote="127.0.0.1:8000", fd=9)
    server = Socket(family="tcp", state="ESTABLISHED", local="127.0.0.1:8000", remote="127.0.0.1:50000", fd=5)
    call = f"SocketIO.readinto@socket.py:706 Roller.roll@app/roll.py:7 {EXECUTOR} {MAIN}"
    roller = process(stacks, PARENT, "ray::Roller.roll", call, sockets=[client], syscall=45, arg0=9)
    handlers = [(f"handler-{i}", text) for i, text in enumerate(threads)]
    driver = process(
        stacks, DRIVER, "driver", f"{RAY_GET} main@app/main.py:30", kind="driver", refs=[task_id(1)], sockets=[server], extra_threads=handlers
    )
    kernel = [
        replace(t, state="S", wchan="futex_do_wait" if "handle" in text[:6] else "hrtimer_nanosleep", syscall=None)
        for t, text in zip(driver.threads[1:], threads, strict=True)
    ]
    chain = (AwaitFrame(function="start", file="aiohttp/web_protocol.py", line=3), AwaitFrame(function="until_finished", file="app/main.py", line=8))
    looks = AsyncTask(address=1, name="Task-1", chain=chain, awaited=Awaited(kind="sleep", delay_s=2.0), stable=True, tid=DRIVER + 1000)
    driver = replace(driver, threads=(driver.threads[0], *kernel), async_tasks=(looks,) if polls else ())
    ray = ray_state(actors=[actor(0, "Roller", PARENT)], cores=[core(PARENT, running=[1], actor_number=0)])
    report = diagnose(snapshot(stacks.node([roller, driver]), ray))
    first = report.findings[0]
    assert (report.verdict.state, first.cause, {w.pid for w in first.who}) == (State.HANG, cause, who)


@pytest.mark.parametrize(
    ("answers_beside", "state"), [(False, State.HANG), (True, State.UNKNOWN)], ids=["one call at a time", "another thread answers"]
)
def test_a_rank_that_calls_one_that_waits_for_it_in_a_collective(answers_beside: bool, state: State) -> None:
    """Rank 0 asks rank 1 for its metrics from within the step; rank 1 is in the step's all_reduce already."""
    stacks = Stacks()
    step = f"Trainer.step@app/trainer.py:20 {EXECUTOR} {MAIN}"
    asks = f"{RAY_GET} Trainer.collect@app/trainer.py:9 {step}"
    beside = [("metrics", f"Trainer.metrics@app/trainer.py:30 {EXECUTOR}")] if answers_beside else []
    ranks = [
        process(stacks, 100, "ray::Trainer.step", asks, rank=0, size=2, refs=[task_id(9)]),
        process(stacks, 101, "ray::Trainer.step", f"{ALL_REDUCE} {step}", rank=1, size=2, extra_threads=beside),
    ]
    owned = [OwnedTask(task_id=task_id(9), name="Trainer.metrics", actor_id=f"{1:032x}")]
    running = [1, 9] if answers_beside else [1]
    cores = [core(100, running=[0], owned=owned, actor_number=0), core(101, running=running, actor_number=1)]
    ray = ray_state(actors=[actor(i, "Trainer", 100 + i) for i in range(2)], cores=cores)
    report = diagnose(snapshot(stacks.node(ranks), ray))
    assert report.verdict.state is state
    if state is State.HANG:
        assert (report.findings[0].cause, [w.pid for w in report.findings[0].who]) == (Cause.RAY_GET_CYCLE, [100])


@pytest.mark.parametrize(
    ("whys", "told", "silent"),
    [
        ((Why.AWAITED_SOCKET, Why.AWAITED_SOCKET), ("should send next",), ("locks", "pipe")),
        ((Why.FILE_LOCK, Why.PIPE), ("locks in the same order", "pipe ends"), ("send next",)),
        ((Why.CHILD_QUEUE, Why.SEMAPHORE), ("should send next", "locks in the same order"), ("pipe",)),
    ],
)
def test_what_to_do_of_a_ring_is_told_by_what_its_members_wait_for(whys: tuple[Why, Why], told: tuple[str, ...], silent: tuple[str, ...]) -> None:
    edges = tuple(Edge(source=a, target=b, why=why, evidence="") for (a, b), why in zip((("1", "2"), ("2", "1")), whys, strict=True))
    root = Root(nodes=("1", "2"), waiters=(), is_cycle=True, chain=(), hope=Outlook.STANDS, certainty=Certainty.LIKELY)
    text = "; ".join(remedy_of(Ring(root=root, members=(), edges=edges, certainty=Certainty.LIKELY, needed=frozenset())))
    assert all(word in text for word in told)
    assert not any(word in text for word in silent)
    assert "time limit" in text
