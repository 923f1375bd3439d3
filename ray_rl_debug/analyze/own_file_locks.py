"""Locks on files that a process tries again and again while it has them itself, over another descriptor: nobody else could give them back.

SQLite waits so for another connection of the same process, and the filelock package for another object of the same file. The kernel lists no waiter.
"""

from __future__ import annotations

from ray_rl_debug.analyze.coroutines import is_apart, own_frame, serves
from ray_rl_debug.analyze.kinds_of_places import IDLE_KINDS, Kind
from ray_rl_debug.analyze.main_activity import SeenThread
from ray_rl_debug.analyze.outlook_facts import Facts
from ray_rl_debug.analyze.pauses import wakes_often
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.model.snapshot import AsyncTask, FileLock

_PASSES_ON = frozenset({"task", "gather", "executor"})
"""Waits for another coroutine or thread of the same process."""


def tries_own_lock(f: Facts) -> str | None:
    """A row of the table of outlooks: its waking is no progress."""
    path = own_lock_tried(f.one)
    return f"it tries again and again to lock {path}, which it has locked itself, and nothing else of it goes on" if path is not None else None


def own_lock_tried(one: Seen) -> str | None:
    """The file whose lock one thread or coroutine of it tries again and again, where it has that lock itself and all others wait for that one."""
    own = [lock for lock in one.node.locks if lock.pid == one.process.pid and not lock.waiting and lock.access == "WRITE"]
    if not own or one.is_stopped:
        return None
    thread = one.followed or one.telling
    tasks = [t for t in one.process.async_tasks or () if own_frame(t) is not None and not serves(t) and not is_apart(t)]
    if thread is not None and thread.place.kind is Kind.SLEEP and _sleeps_in_c(one, thread):
        return _open_twice(one, own) if _all_wait(one, thread, tasks) else None
    tries = [t for t in tasks if _tries_lock(t)]
    if not tries or not _all_wait(one, None, [t for t in tasks if t not in tries]):
        return None
    held = [lock for lock in one.node.locks if not lock.waiting and lock.kind == "FLOCK" and _path(one, lock, ".lock")]
    foreign = any(lock.kind == "FLOCK" and lock.pid != one.process.pid for lock in one.node.locks)  # which file it tries was not seen
    return _path(one, held[0], ".lock") if held and not foreign else None


def _sleeps_in_c(one: Seen, thread: SeenThread) -> bool:
    """Does it come back again and again to a sleep in C, at a line that, as its source tells, calls no sleep?"""
    calls = thread.frames[0].calls if thread.frames else None
    return calls is not None and "sleep" not in calls and thread.kernel is not None and wakes_often(one, thread.kernel)


def _open_twice(one: Seen, own: list[FileLock]) -> str | None:
    """The file of a lock of its own that it has open more than once, and of which no other process has a part."""
    for lock in own:
        if any((r.device, r.inode) == (lock.device, lock.inode) and r.pid != one.process.pid for r in one.node.locks):
            continue
        files = [f for f in one.process.files or () if (f.device, f.inode) == (lock.device, lock.inode) and f.writable]
        if lock.kind == "POSIX" and len(files) > 1:
            return files[0].path
    return None


def _tries_lock(task: AsyncTask) -> bool:
    return task.awaited is not None and task.awaited.kind == "sleep" and any("filelock/" in (f.file or "") for f in task.chain)


def _path(one: Seen, lock: FileLock, suffix: str) -> str | None:
    files = (f.path for f in one.process.files or () if (f.device, f.inode) == (lock.device, lock.inode))
    return next((path for path in files if path.endswith(suffix)), None)


def _all_wait(one: Seen, thread: SeenThread | None, tasks: list[AsyncTask]) -> bool:
    """Does each of these coroutines, and each other thread of own code, wait for another of its process or for work?"""
    if any(t is not thread and t.place.path and t.place.kind not in (*IDLE_KINDS, Kind.LOOP_IDLE) for t in one.threads):
        return False
    return all(t.awaited is not None and t.awaited.kind in _PASSES_ON for t in tasks)
