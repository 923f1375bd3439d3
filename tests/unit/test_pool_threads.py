"""Threads of a loop's pool that are in a call of C: the pool's own frame is all that shows of them, and any of them may have what is awaited."""

from __future__ import annotations

import msgspec
import pytest
from scenes import Stacks, process, snapshot

from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.places import place_of
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Certainty, Report, State
from ray_rl_debug.model.snapshot import AsyncTask, Awaited, AwaitFrame, Frame, OpenFile, Thread

MAIN, FIRST, SECOND = 100, 200, 201
READ, WRITE, SLEEP, FUTEX, EPOLL = 0, 1, 230, 202, 232
LOOP = (
    "EpollSelector.select@selectors.py:468 BaseEventLoop._run_once@asyncio/base_events.py:1884 BaseEventLoop.run_forever@asyncio/base_events.py:607"
    " <module>@app/agent.py:62"
)
OUTER = "_worker@concurrent/futures/thread.py:83 Thread.run@threading.py:982 Thread._bootstrap_inner@threading.py:1045"
IN_C = f"_WorkItem.run@concurrent/futures/thread.py:58 {OUTER}"
WORKS = f"score@app/agent.py:30 {IN_C}"


def frames(text: str) -> tuple[Frame, ...]:
    words = (word.rpartition(":")[0].partition("@") for word in text.split())
    return tuple(Frame(function=function, file=file, line=58) for function, _, file in words)


@pytest.mark.parametrize(
    ("stack", "call", "kind"),
    [
        (IN_C, "read", Kind.FILE),
        (IN_C, "clock_nanosleep", Kind.SLEEP),
        (IN_C, "futex", Kind.LOCK),
        (OUTER, "futex", Kind.IDLE),
        ("mapstar@multiprocessing/pool.py:48 worker@multiprocessing/pool.py:125", "read", Kind.FILE),
        ("_process_worker@concurrent/futures/process.py:263 BaseProcess.run@multiprocessing/process.py:108", "write", Kind.FILE),
    ],
    ids=["reads", "sleeps", "at a lock", "between two pieces", "a worker of multiprocessing", "a worker of an executor"],
)
def test_what_a_pool_calls_in_c_is_work(stack: str, call: str, kind: Kind) -> None:
    place = place_of(frames(stack), None, Thread(tid=1, comm="python", state="S", call=call, syscall_arg0=3))
    assert (place.kind, bool(place.path)) == (kind, kind is not Kind.IDLE)


def agent(second: str, *, queued: bool, cpu_s: float = 0.0, asked: str = "rests") -> Report:
    """A loop with two threads in its pool, each of which reads what a sandbox prints. The first sandbox rests."""
    stacks = Stacks()
    running = "thread future pending" if queued else "thread future running"
    chain = (AwaitFrame(function="Box.ask", file="app/agent.py", line=42), AwaitFrame(function="to_thread", file="asyncio/threads.py", line=25))
    waits = [
        AsyncTask(address=i, name=f"Task-{i}", chain=chain, awaited=Awaited(kind="executor", detail=running), stable=True, tid=MAIN) for i in (1, 2)
    ]
    pool = [("pool_0", IN_C), ("pool_1", second)]
    main = process(
        stacks, MAIN, "python agent.py", LOOP, kind="named", syscall=EPOLL, wchan="do_epoll_wait", extra_threads=pool, async_tasks=(*waits,)
    )
    reads = [
        msgspec.structs.replace(t, syscall=READ, syscall_arg0=fd, wchan="anon_pipe_read") for fd, t in zip((5, 7), main.threads[1:], strict=True)
    ]
    if second == WORKS:
        reads[1] = msgspec.structs.replace(reads[1], state="R", syscall=None, syscall_arg0=None, wchan=None, cpu_s=cpu_s)
    ends = [OpenFile(fd=fd, path=f"pipe:[{fd}]", kind="pipe", inode=fd, writable=fd in (4, 6)) for fd in (4, 5, 6, 7)]
    main = msgspec.structs.replace(main, threads=(main.threads[0], *reads), files=(*ends,))
    boxes = []
    for pid, (takes, gives), sleeps in ((FIRST, (4, 5), False), (SECOND, (6, 7), asked == "sleeps")):
        at = (SLEEP, None, "hrtimer_nanosleep") if sleeps else (READ, 0, "anon_pipe_read")
        box = process(stacks, pid, "python box.py", "serve@app/box.py:21", kind="child", ppid=MAIN, syscall=at[0], arg0=at[1], wchan=at[2])
        held = (ends[takes - 4], ends[gives - 4])
        files = [msgspec.structs.replace(f, fd=n, writable=not f.writable) for n, f in enumerate(held)]
        boxes.append(
            msgspec.structs.replace(box, files=(*files,), threads=(msgspec.structs.replace(box.threads[0], wakes_in_s=4.0 if sleeps else None),))
        )
    return diagnose(snapshot(stacks.node([main, *boxes])))


def test_work_that_no_thread_is_free_for() -> None:
    """Both threads read what sandboxes say that were asked nothing; what should ask them waits for a thread."""
    report = agent(IN_C, queued=True)
    first = report.findings[0]
    assert (report.verdict.state, first.certainty, [w.pid for w in first.who]) == (State.HANG, Certainty.LIKELY, [MAIN])
    assert "free thread of its pool" in first.summary


@pytest.mark.parametrize(
    ("second", "cpu_s", "asked"), [(IN_C, 0.0, "sleeps"), (WORKS, 1.9, "rests")], ids=["its sandbox will answer", "the other thread works"]
)
def test_a_thread_that_only_listens_keeps_no_loop(second: str, cpu_s: float, asked: str) -> None:
    report = agent(second, queued=False, cpu_s=cpu_s, asked=asked)
    assert report.verdict.state is not State.HANG
    assert all(f.certainty is Certainty.POSSIBLE for f in report.findings)
