"""Tasks of a process as CPython's own remote inspection tells them: 3.14 and later, for a target of the version that this program runs on.

It knows builds that our table of offsets does not, and it tells no more than names, chains and which task awaits which: what is finally awaited,
the loop and the holders of locks come from our own reader, as do the tasks of other threads, which 3.14.10 leaves out, and names that are not ASCII,
of which it makes zeros. It reads foreign memory in C, so it runs in a child process with a time limit.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

import msgspec

from ray_rl_debug.bounded.programs import Finished, run_bounded
from ray_rl_debug.collect.async_tasks.chains import shortened
from ray_rl_debug.formats.stack_table import short_file
from ray_rl_debug.model.snapshot import AsyncTask, Awaited, AwaitFrame

MAX_TEXT, MAX_DEPTH = 500, 2000
MAX_ANSWER_BYTES = 64 << 20
_ASK = """
import json, sys
import _remote_debugging
pid, most, deep, long = map(int, sys.argv[1:])
def text(value):
    return str(value)[:long].encode("utf-8", "replace").decode()
def frames(stacks):
    return [[text(f.funcname), text(f.filename), getattr(f, "lineno", None)] for s in stacks for f in s.call_stack][:deep]
inspector = _remote_debugging.RemoteUnwinder(pid)
tasks = [
    [t.task_id, text(t.task_name), thread.thread_id, frames(t.coroutine_stack), [s.task_name for s in t.awaited_by if isinstance(s.task_name, int)]]
    for thread in inspector.get_all_awaited_by() for t in thread.awaited_by
]
running = [thread.awaited_by[0].task_id for thread in inspector.get_async_stack_trace() if thread.awaited_by]
print(json.dumps([tasks[:most], running]))
"""
"""For each task the innermost frame comes first, and `task_name` of what awaits it is that task's address."""
UNREADABLE = "?"
_KINDS = {
    ("asyncio/tasks.py", "sleep"): "sleep",
    ("asyncio/locks.py", "Lock.acquire"): "lock",
    ("asyncio/locks.py", "Semaphore.acquire"): "semaphore",
    ("asyncio/locks.py", "Event.wait"): "event",
    ("asyncio/locks.py", "Condition.wait"): "condition",
    ("asyncio/queues.py", "Queue.get"): "queue",
    ("asyncio/queues.py", "Queue.put"): "queue",
    ("asyncio/queues.py", "Queue.join"): "queue",
}


class InspectedTask(msgspec.Struct, frozen=True, array_like=True):
    """One task as CPython tells it."""

    address: int
    name: str
    thread: int
    """The native thread of its loop, in the target's PID namespace; 0: not known."""
    frames: tuple[tuple[str, str, int | None], ...]
    """Function, file, line; the innermost coroutine first."""
    awaited_by: tuple[int, ...] = ()


class Inspection(msgspec.Struct, frozen=True, array_like=True):
    """All tasks of a process, and those that are executed at this moment."""

    tasks: tuple[InspectedTask, ...]
    running: tuple[int, ...] = ()


_decoder = msgspec.json.Decoder(Inspection)


def can_inspect(version_of: Callable[[], tuple[int, int] | None], own: tuple[int, int] = sys.version_info[:2]) -> bool:
    """Does the Python that we run on know how to inspect one of this version? The version is asked for only where that is possible at all."""
    return own >= (3, 14) and bool(sys.executable) and version_of() == own


def inspect_remotely(pid: int, *, deadline_s: float, max_tasks: int, run: Callable[..., Finished] = run_bounded) -> Inspection | None:
    """What CPython tells of a process; None where it refuses, breaks, or does not end in time."""
    command = [sys.executable, "-I", "-S", "-c", _ASK, *(str(n) for n in (pid, max_tasks, MAX_DEPTH, MAX_TEXT))]
    try:
        done = run(command, max(0.01, deadline_s), max_bytes=MAX_ANSWER_BYTES)
        return _decoder.decode(done.out) if done.code == 0 else None
    except (OSError, msgspec.DecodeError):
        return None


def merge(
    own: Iterable[AsyncTask] | None, told: Inspection, again: Callable[[], Iterable[AsyncTask] | None], native: Mapping[int, int]
) -> tuple[AsyncTask, ...]:
    """The tasks that either of the two knows: chains by CPython, all else by our reader.

    Where the chains of a task differ it is read again: a task that moved meanwhile is told as our reader sees it now and has ``stable`` False, of one
    that did not CPython's chain holds.
    """
    found = {t.address: t for t in own or ()}
    added = _as_tasks(told, native)
    differing = {address for address, task in added.items() if address in found and not _agrees(found[address], task)}
    later = {t.address: t for t in again() or ()} if differing else {}
    for address, task in added.items():
        before = found.get(address)
        if before is None:
            found[address] = task
            continue
        now = later.get(address, before)
        if address in differing and before.stable is not False:
            has_moved = now.stable is False or now.chain != before.chain
            now = msgspec.structs.replace(now, stable=False) if has_moved else msgspec.structs.replace(before, chain=task.chain)
            found[address] = now
    return tuple(found.values())


def _agrees(own: AsyncTask, told: AsyncTask) -> bool:
    """The same chain, as far as CPython sees it: it stops at awaitables that are written in C, and a task that runs shows its first coroutine."""
    if own.stable is False or own.awaited == Awaited(kind="running"):
        return True
    pairs = zip(own.chain, told.chain, strict=False)
    return len(told.chain) <= len(own.chain) and all(
        (a.file, a.line) == (b.file, b.line) and b.function in (a.function, UNREADABLE) for a, b in pairs
    )


def _as_tasks(told: Inspection, native: Mapping[int, int]) -> dict[int, AsyncTask]:
    awaits: dict[int, list[int]] = defaultdict(list)
    for task in told.tasks:
        for waiter in task.awaited_by:
            awaits[waiter].append(task.address)
    running = frozenset(told.running)
    return {t.address: _as_task(t, tuple(awaits.get(t.address, ())), t.address in running, native) for t in told.tasks}


def _as_task(task: InspectedTask, awaits: tuple[int, ...], is_running: bool, native: Mapping[int, int]) -> AsyncTask:
    chain = tuple(AwaitFrame(function=_readable(function), file=short_file(file)[0], line=line) for function, file, line in reversed(task.frames))
    return AsyncTask(
        address=task.address,
        name=_readable(task.name),
        chain=shortened(chain) or (AwaitFrame(function=UNREADABLE),),
        awaited=Awaited(kind="running") if is_running else _awaited(chain, awaits),
        tid=native.get(task.thread),
    )


def _readable(text: str) -> str:
    return text if text and "\0" not in text else UNREADABLE


def _awaited(chain: tuple[AwaitFrame, ...], awaits: tuple[int, ...]) -> Awaited:
    if awaits:
        return Awaited(kind="gather" if len(awaits) > 1 else "task", tasks=awaits)
    return Awaited(kind=_KINDS.get((chain[-1].file or "", chain[-1].function), "future") if chain else "unknown")
