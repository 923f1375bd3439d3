"""How sure one may be that coroutines are stuck: who is left that could wake them? And whom they wait for outside of their process."""

from __future__ import annotations

import msgspec
import pytest
from test_coroutines import LOOP, NO_PERMIT, lock, of, task

from ray_rl_debug.analyze.coroutines import describe_awaited, find_ends
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Certainty, Report, State
from ray_rl_debug.model.snapshot import AsyncTask, Awaited, OpenFile, Process, Socket
from tests.unit.scenes import Stacks, process, snapshot

EVENT = Awaited(kind="event", detail="Event unset", address=5)
PAIR = tuple(Socket(family="unix", state="ESTABLISHED", local="", remote="", inode=a, peer_inode=b, fd=a) for a, b in ((3, 4), (4, 3)))
"""Through which an event loop wakes itself."""
PEER = Socket(family="tcp", state="ESTABLISHED", local="10.0.0.1:5000", remote="10.0.0.2:8000", fd=9, inode=9)
LISTENS = Socket(family="tcp", state="LISTEN", local="0.0.0.0:80", inode=8)
SERVES = Socket(family="tcp", state="ESTABLISHED", local="10.0.0.1:80", remote="10.0.0.1:5001", fd=9, inode=9)
CLIENT = msgspec.structs.replace(SERVES, local=SERVES.remote, remote=SERVES.local, inode=10)
LOG = OpenFile(fd=1, path="/job/log", kind="file", inode=50)
PIPE = OpenFile(fd=5, path="pipe:[60]", kind="pipe", inode=60)
WORKS = "score@/job/reward.py:7 run@concurrent/futures/thread.py:58 _worker@concurrent/futures/thread.py:83 run@threading.py:982"


def report(
    *tasks: AsyncTask,
    sockets: tuple[Socket, ...] | None = PAIR,
    children: tuple[str, ...] = (),
    age_s: float | None = None,
    child_syscall: int | None = None,
    **more: object,
) -> Report:
    stacks = Stacks()
    one = process(stacks, 200, "python agent.py", LOOP, kind="named", async_tasks=tasks, sockets=sockets or (), **more)  # type: ignore[arg-type]
    if sockets is None:
        one = msgspec.structs.replace(one, sockets=None)
    inside = [
        process(stacks, 300 + i, title, "wait@/job/tool.py:1", kind="child", ppid=200, syscall=child_syscall) for i, title in enumerate(children)
    ]
    taken = snapshot(stacks.node([one]))
    now_s = taken.nodes[0].started_time_s + taken.nodes[0].window_s
    aged = [msgspec.structs.replace(p, start_time_s=now_s - age_s if age_s is not None else None) for p in inside]
    return diagnose(snapshot(stacks.node([one, *aged])))


def certainty(*tasks: AsyncTask, **more: object) -> Certainty | None:
    findings = report(*tasks, **more).findings  # type: ignore[arg-type]
    return findings[0].certainty if findings else None


@pytest.mark.parametrize("kind", ["event", "condition", "queue", "future"])
def test_nobody_is_left(kind: str) -> None:
    assert certainty(task(1, Awaited(kind=kind), "episode")) is Certainty.LIKELY


@pytest.mark.parametrize(
    "more",
    [
        {"sockets": (*PAIR, PEER)},
        {"sockets": None},
        {"sockets": PAIR[:1]},
    ],
    ids=["a peer", "sockets unread", "a pair whose other end is elsewhere"],
)
def test_somebody_may_wake_them(more: dict[str, object]) -> None:
    assert certainty(task(1, EVENT, "episode"), **more) is Certainty.POSSIBLE


@pytest.mark.parametrize(("timer_s", "is_sure"), [(30.0, False), (3600.0, True), (-5.0, True), (None, True)])
def test_a_timer_that_is_soon_due(timer_s: float | None, is_sure: bool) -> None:
    assert (certainty(msgspec.structs.replace(task(1, EVENT, "episode"), timer_s=timer_s)) is Certainty.LIKELY) == is_sure


@pytest.mark.parametrize(
    ("apart", "timers", "sure", "state"),
    [
        (True, 1, Certainty.LIKELY, State.HANG),
        (True, 2, Certainty.POSSIBLE, State.UNKNOWN),
        (True, None, Certainty.POSSIBLE, State.UNKNOWN),
        (False, 1, Certainty.POSSIBLE, State.SLOW),
        (None, 1, Certainty.POSSIBLE, State.UNKNOWN),
    ],
    ids=["a heartbeat", "another timer", "timers unread", "it may set the event", "source unread"],
)
def test_a_coroutine_beside_them_that_sleeps(apart: bool | None, timers: int | None, sure: Certainty, state: State) -> None:
    waiting = task(1, EVENT, "episode")
    beating = task(2, Awaited(kind="sleep", delay_s=1.0, due_s=0.3), "beat")
    chain = tuple(msgspec.structs.replace(frame, apart=apart) for frame in beating.chain)
    told = report(
        *(msgspec.structs.replace(t, timer_s=0.3, timers=timers) for t in (waiting, msgspec.structs.replace(beating, chain=chain, stable=False)))
    )
    assert (told.findings[0].certainty, told.verdict.state) == (sure, state)


def test_a_thread_of_a_pool_does_not_wait_for_the_loop() -> None:
    """It wants a lock; whoever waits for an event beside it is not accused for that."""
    findings = report(task(1, EVENT, "episode"), extra_threads=[("reward_0", WORKS)]).findings
    assert [f.summary for f in findings if f.certainty is Certainty.LIKELY and f.id == "RRD201"] == []


def test_a_sleeper_may_wake_them() -> None:
    assert certainty(task(1, EVENT, "episode"), task(2, Awaited(kind="sleep", delay_s=5.0), "refills")) is Certainty.POSSIBLE


def test_an_idle_server_and_a_loop_beside_it() -> None:
    serves = msgspec.structs.replace(task(1, Awaited(kind="future"), "serve"), loop=1)
    beside = msgspec.structs.replace(task(2, EVENT, "episode"), loop=2)
    assert certainty(serves, msgspec.structs.replace(beside, loop=1), sockets=(*PAIR, LISTENS)) is None
    assert certainty(serves, beside, sockets=(*PAIR, LISTENS)) is Certainty.POSSIBLE


def test_calls_that_work_come_before_those_that_stand_in_line() -> None:
    queued = [task(n, Awaited(kind="executor", detail="thread future pending"), "reward") for n in range(10, 30)]
    first, second = find_ends(of(task(1, Awaited(kind="executor", detail="thread future running"), "reward"), *queued))
    assert (len(first.tasks), len(second.tasks)) == (1, 20)


@pytest.mark.parametrize(
    ("awaited", "text"),
    [
        (Awaited(kind="socket", detail="socket read", fd=9), "an answer of 10.0.0.2:8000"),
        (Awaited(kind="socket", detail="socket write", fd=9), "10.0.0.2:8000 to read what it is sent"),
        (Awaited(kind="socket", detail="socket connect", fd=9), "a connection to 10.0.0.2:8000"),
        (Awaited(kind="socket", detail="Future", fd=9), "an answer of 10.0.0.2:8000"),
        (Awaited(kind="socket", detail="socket read", fd=3), "a socket"),
        (Awaited(kind="subprocess", detail="process", pid=300), "the child process 300"),
        (Awaited(kind="executor", detail="thread future pending"), "a free thread of an executor"),
        (NO_PERMIT, "Semaphore with 0 permits: no coroutine is inside its async with"),
        (lock(7), "Lock that is locked: no coroutine is inside its async with"),
    ],
)
def test_what_is_awaited_in_words(awaited: Awaited, text: str) -> None:
    seen: Process = of(sockets=(*PAIR, PEER))
    assert describe_awaited(seen, awaited) == text


@pytest.mark.parametrize(
    ("age_s", "syscall", "expected"),
    [(4.0, 35, Certainty.POSSIBLE), (4.0, 257, Certainty.LIKELY), (90.0, 35, Certainty.POSSIBLE), (None, 35, Certainty.POSSIBLE)],
    ids=["young", "young, at a file", "old, and asleep", "asleep, of unknown age"],
)
def test_a_program_that_an_agent_awaits_may_well_end(age_s: float | None, syscall: int, expected: Certainty) -> None:
    waits = task(1, Awaited(kind="subprocess", detail="process", pid=300), "Tool.run")
    assert certainty(waits, children=("sandbox",), age_s=age_s, child_syscall=syscall) is expected


def test_the_output_of_a_child() -> None:
    waits = tuple(task(n, Awaited(kind="subprocess", detail="process", pid=300), "Tool.run") for n in (1, 2, 3))
    finding = report(*waits, children=("sandbox",)).findings[0]
    assert (finding.id, [w.pid for w in finding.who]) == ("RRD502", [200, 300])
    assert "awaits the end or the output of" in finding.summary
    assert any("3 coroutines wait at Tool.run (agent.py:10) for child pid 300" in e.text for e in finding.evidence)


@pytest.mark.parametrize(("due_s", "named"), [(-28.0, True), (0.3, False), (None, False)], ids=["over long ago", "soon over", "not told"])
def test_a_coroutine_of_a_loop_that_nobody_runs_ends_no_wait(due_s: float | None, named: bool) -> None:
    """A call was handed to a loop whose thread has ended: it sleeps there for ever."""
    asleep = msgspec.structs.replace(task(1, Awaited(kind="sleep", delay_s=0.5, due_s=due_s), "Tools.call"), tid=None)
    stacks = Stacks()
    waits = "Condition.wait@threading.py:327 Future.result@concurrent/futures/_base.py:451 Tools.run@/job/agent.py:45"
    main = process(stacks, 200, "python agent.py", waits, kind="named", wchan="futex_do_wait", async_tasks=(asleep,), sockets=(*PAIR, SERVES))
    asks = "SocketIO.readinto@socket.py:706 play@/job/play.py:3"
    client = process(stacks, 300, "python play.py", asks, kind="named", sockets=(CLIENT,), syscall=45, arg0=9)
    said = diagnose(snapshot(stacks.node([main, client])))
    assert [(f.id, f.certainty) for f in said.findings if "no thread runs its loop" in f.summary] == [("RRD503", Certainty.LIKELY)] * named
    assert named or all(f.certainty is Certainty.POSSIBLE for f in said.findings)


@pytest.mark.parametrize(("stable", "sure"), [(False, set()), (True, {Certainty.LIKELY})], ids=["elsewhere at the second read", "at one line"])
def test_a_coroutine_on_its_way_may_end_the_wait_for_its_result(stable: bool, sure: set[Certainty]) -> None:
    runs = msgspec.structs.replace(task(1, Awaited(kind="event" if stable else "running", address=5), "Tools.call", stable=stable), tid=1200)
    stacks = Stacks()
    waits = "Condition.wait@threading.py:327 Future.result@concurrent/futures/_base.py:451 Tools.run@/job/agent.py:45"
    main = process(stacks, 200, "python agent.py", waits, kind="named", wchan="futex_do_wait", async_tasks=(runs,), extra_threads=[("tools", LOOP)])
    asks = process(stacks, 300, "sh", "wait@/job/play.py:3", kind="named")
    said = diagnose(snapshot(stacks.node([main, asks])))
    assert {f.certainty for f in said.findings} - {Certainty.POSSIBLE} == sure


@pytest.mark.parametrize(
    ("stack", "files", "sockets", "sure"),
    [
        (LOOP, (), (), True),
        (LOOP, (LOG,), (LISTENS,), True),
        (LOOP, (PIPE,), (), False),
        (LOOP, (), (msgspec.structs.replace(PAIR[0], inode=77, peer_inode=3),), False),
        (LOOP, None, (), False),
        ("wait@/job/tool.py:1", (), (), False),
    ],
    ids=["it rests", "a server with the same log", "a pipe of both", "a pair of both", "its files were not read", "it is at work"],
)
def test_a_child_that_shares_nothing_with_them_wakes_nobody(
    stack: str, files: tuple[OpenFile, ...] | None, sockets: tuple[Socket, ...], sure: bool
) -> None:
    stacks = Stacks()
    waits = msgspec.structs.replace(task(1, EVENT, "episode"), timers=0)
    one = process(stacks, 200, "python agent.py", LOOP, kind="named", async_tasks=(waits,), sockets=PAIR)
    child = process(stacks, 300, "python tool.py", stack, kind="child", ppid=200, sockets=sockets)
    node = stacks.node([msgspec.structs.replace(one, files=(LOG, PIPE)), msgspec.structs.replace(child, files=files)])
    found = {f.certainty for f in diagnose(snapshot(node)).findings if any(w.pid == 200 for w in f.who)}
    assert found == {Certainty.LIKELY if sure else Certainty.POSSIBLE}
