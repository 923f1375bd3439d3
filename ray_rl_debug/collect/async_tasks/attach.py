"""The tasks of all processes of a node, read at two moments."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from ray_rl_debug.collect.async_tasks.apart import mark_apart
from ray_rl_debug.collect.async_tasks.asked import ask_helper
from ray_rl_debug.collect.async_tasks.reader import read_async_tasks
from ray_rl_debug.model import gaps
from ray_rl_debug.model.snapshot import AsyncTask, Gap, Process

EACH_S = 2.0
TOTAL_S = 4.0
"""For one pass over all processes of a node: an actor with torch takes about 0.05 s of one core."""
ASKED_S = 1.0
"""For the answer of a prepared process whose memory may not be read."""
SAME_SLEEP_S = 0.25
"""How far two reckonings of the end of one sleep may differ."""


class AsyncRead(msgspec.Struct, frozen=True, kw_only=True):
    """What one read of one process gave."""

    at_s: float
    """Monotonic."""
    tasks: tuple[AsyncTask, ...] | None
    gap: Gap | None


def read_all_async_tasks(
    pids: Iterable[int],
    *,
    total_s: float = TOTAL_S,
    proc: Path = Path("/proc"),
    clock: Callable[[], float] = time.monotonic,
) -> dict[int, AsyncRead]:
    """One read of each process, as far as `total_s` seconds go; those for which no time was left have a gap."""
    end = clock() + total_s
    found = {}
    for pid in pids:
        left = end - clock()
        if left <= 0:
            gap = Gap(id=gaps.ASYNC_UNREAD, where=f"/{pid}", what="asyncio tasks", reason=f"no time left: {total_s:g} s for all processes")
            found[pid] = AsyncRead(at_s=clock(), tasks=None, gap=gap)
            continue
        tasks, gap_of_one = read_async_tasks(pid, deadline_s=min(EACH_S, left), proc=proc)
        if tasks is None and gap_of_one is not None and gap_of_one.id != gaps.PROCESS_GONE:
            told = ask_helper(pid, deadline_s=min(ASKED_S, left), proc=proc)
            tasks, gap_of_one = (told, None) if told is not None else (None, gap_of_one)
        found[pid] = AsyncRead(at_s=clock(), tasks=tasks, gap=gap_of_one)
    return found


def attach_async_tasks(
    processes: Sequence[Process],
    earlier: Mapping[int, AsyncRead],
    *,
    total_s: float = TOTAL_S,
    proc: Path = Path("/proc"),
) -> tuple[list[Process], list[Gap]]:
    """The processes with their tasks as they are now, and what could not be read.

    `earlier` is what `read_all_async_tasks` gave at the start of the window: it says which processes to read again, and which of their tasks have
    not moved since (``stable``; None for those of a process that was not read in time before).
    """
    again = [p.pid for p in processes if p.pid in earlier and (earlier[p.pid].tasks or _is_unread(earlier[p.pid]))]
    later = read_all_async_tasks(again, total_s=total_s, proc=proc)
    found, missing = [], []
    for process in processes:
        first, second = earlier.get(process.pid), later.get(process.pid)
        last = second or first
        if last is None:
            found.append(process)
            continue
        tasks, gap = last.tasks, last.gap
        if first is not None and second is not None and tasks is None and gap is not None and gap.id != gaps.PROCESS_GONE:
            tasks = first.tasks  # an old read tells more than none
        elif first is not None and second is not None and tasks is not None and first.tasks is not None:
            tasks = mark_stable(first.tasks, tasks, second.at_s - first.at_s)
        found.append(msgspec.structs.replace(process, async_tasks=tasks))
        if gap is not None:
            missing.append(gap)
    return mark_apart(found, proc=proc), _merged(missing)


def _is_unread(read: AsyncRead) -> bool:
    return read.tasks is None and read.gap is not None and read.gap.id == gaps.ASYNC_UNREAD


def mark_stable(earlier: Iterable[AsyncTask], later: Iterable[AsyncTask], elapsed_s: float) -> tuple[AsyncTask, ...]:
    """The later tasks, each with ``stable``: did it stand at the same place, waiting for the same thing, `elapsed_s` seconds before?"""
    before = {task.address: task for task in earlier}
    return tuple(msgspec.structs.replace(task, stable=_is_same(before.get(task.address), task, elapsed_s)) for task in later)


def _is_same(before: AsyncTask | None, after: AsyncTask, elapsed_s: float) -> bool | None:
    if before is None or False in (before.stable, after.stable) or before.name != after.name or before.chain != after.chain:
        return False
    old, new = before.awaited, after.awaited
    if old is None or new is None:
        return old is new
    if (old.kind, old.address, old.object_id, old.fd) != (new.kind, new.address, new.object_id, new.fd):
        return False
    if new.kind != "sleep":
        return True
    if old.due_s is not None and new.due_s is not None:
        return abs(old.due_s - new.due_s - elapsed_s) < SAME_SLEEP_S
    # where the timer does not tell, a loop of short sleeps looks like one sleep
    return True if new.delay_s is not None and new.delay_s > elapsed_s and old.delay_s == new.delay_s else None


def _merged(missing: Iterable[Gap]) -> list[Gap]:
    """Gaps of one reason as one, when there are many."""
    by_reason: dict[tuple[str, str], list[Gap]] = {}
    for gap in missing:
        by_reason.setdefault((gap.id, gap.reason), []).append(gap)
    merged = []
    for (id, reason), same in by_reason.items():
        merged += same if len(same) <= 3 else [Gap(id=id, where="", what=f"asyncio tasks of {len(same)} processes", reason=reason)]
    return merged
