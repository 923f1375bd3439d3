"""Locks on files that a process tries again and again while it has them itself."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from scenes import Stacks, process, snapshot

from ray_rl_debug.analyze.own_file_locks import own_lock_tried
from ray_rl_debug.analyze.view import build_view
from ray_rl_debug.model.snapshot import AsyncTask, Awaited, AwaitFrame, FileLock, OpenFile, Thread

PID, DB, CACHE = 100, "/srv/store.db", "/srv/cache.lock"
SPAN = "add_span@app/store.py:23 run@concurrent/futures/thread.py:58 _worker@concurrent/futures/thread.py:83"
LOOP = "select@selectors.py:468 _run_once@asyncio/base_events.py:1884 run@asyncio/runners.py:118 main@app/store.py:40"
IN_C = Thread(tid=PID + 1000, comm="python", state="S", call="clock_nanosleep", wchan="hrtimer_nanosleep", wakes_in_s=0.1, run_slices=200)
PASSES_ON = Awaited(kind="executor", detail="thread future running", address=5)
POLLS = Awaited(kind="sleep", delay_s=0.1, due_s=0.03)


def lock(pid: int, kind: str, inode: int = 7, access: str = "WRITE") -> FileLock:
    return FileLock(lock=pid, kind=kind, access=access, pid=pid, device="fe:00", inode=inode)


def opened(fd: int, path: str) -> OpenFile:
    return OpenFile(fd=fd, path=path, kind="file", inode=7, device="fe:00", writable=True)


def task(number: int, awaited: Awaited, *, tries: bool = False) -> AsyncTask:
    inner = (AwaitFrame(function="AsyncAcquisition.poll", file="filelock/_async.py", line=84),) if tries else ()
    chain = (AwaitFrame(function="fetch", file="/srv/app/store.py", line=number), *inner)
    return AsyncTask(name=f"Task-{number}", chain=chain, address=number, stable=True, awaited=awaited, tid=PID, loop=9, timers=0)


def found(tasks: tuple[AsyncTask, ...], locks: tuple[FileLock, ...], files: tuple[OpenFile, ...], calls: tuple[str, ...] | None = None) -> str | None:
    stacks = Stacks()
    beside = [("asyncio_0", SPAN)] if calls is not None else []
    one: Any = process(stacks, PID, "runner", LOOP, kind="named", wchan="do_epoll_wait", syscall=232, async_tasks=tasks, extra_threads=beside)
    one = replace(one, files=files, threads=(one.threads[0], *([IN_C] if beside else [])))
    node = replace(stacks.node([one]), locks=locks)
    node = replace(node, frames=tuple(replace(f, calls=calls) if f.function == "add_span" else f for f in node.frames))
    return own_lock_tried(build_view(snapshot(node)).seen[f"node1/{PID}"])


TWICE = (opened(6, DB), opened(10, DB))


@pytest.mark.parametrize(
    ("locks", "files", "calls", "others", "path"),
    [
        ((lock(PID, "POSIX"),), TWICE, (), PASSES_ON, DB),
        ((lock(PID, "POSIX"),), TWICE, ("sleep",), PASSES_ON, None),
        ((lock(PID, "POSIX"),), TWICE[:1], (), PASSES_ON, None),
        ((lock(PID, "POSIX"), lock(200, "POSIX", access="READ")), TWICE, (), PASSES_ON, None),
        ((lock(200, "POSIX"),), TWICE, (), PASSES_ON, None),
        ((lock(PID, "POSIX"),), TWICE, (), POLLS, None),
    ],
    ids=["its own", "a pause of its own", "one connection", "another reads", "another has it", "another coroutine pauses"],
)
def test_a_database_that_waits_in_c_for_a_transaction_of_its_own_process(
    locks: tuple[FileLock, ...], files: tuple[OpenFile, ...], calls: tuple[str, ...], others: Awaited, path: str | None
) -> None:
    assert found((task(1, others),), locks, files, calls) == path


@pytest.mark.parametrize(
    ("locks", "first", "path"),
    [
        ((lock(PID, "FLOCK"),), Awaited(kind="task", address=2, tasks=(2,)), CACHE),
        ((lock(PID, "FLOCK"), lock(200, "FLOCK", inode=8)), Awaited(kind="task", address=2, tasks=(2,)), None),
        ((lock(PID, "FLOCK"),), Awaited(kind="socket", detail="socket read", fd=9), None),
    ],
    ids=["its own", "another has one too", "its owner waits for an answer"],
)
def test_a_coroutine_that_polls_for_a_lock_of_the_one_that_awaits_it(locks: tuple[FileLock, ...], first: Awaited, path: str | None) -> None:
    assert found((task(1, first), task(2, POLLS, tries=True)), locks, (opened(6, CACHE),)) == path
