"""Pools of multiprocessing, as the threads tell that they keep in the process that made them: who takes results, and whether any come."""

from __future__ import annotations

from ray_rl_debug.analyze.kernel_calls import kernel_call
from ray_rl_debug.analyze.kinds_of_places import THREAD_WAITS, Kind
from ray_rl_debug.analyze.main_activity import SeenThread
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.model.snapshot import Frame, Thread

_POOL = "multiprocessing/pool.py"
_ENDS = 2
"""So many workers that end within one window without a result do not end at their last task."""


def _is_in(frame: Frame, function: str) -> bool:
    return frame.function.rpartition(".")[2] == function and frame.file.endswith(_POOL)


def _keeps(one: Seen, function: str) -> bool:
    return any(_is_in(f, function) for t in one.threads for f in t.frames)


def taker(one: Seen) -> Thread | None:
    """The kernel's side of the thread that takes the results of a pool, where it waits for the next."""
    return next((t.kernel for t in one.threads if any(_is_in(f, "_handle_results") for f in t.frames) and kernel_call(t.kernel) == "read"), None)


def may_work_for(one: Seen, child: Seen) -> bool:
    """Is a child a worker of a pool, and has its parent one pool alone?"""
    takers = (t for t in one.threads if any(_is_in(f, "_handle_results") for f in t.frames))
    return _keeps(child, "worker") and len([*takers]) == 1


def lacks_taker(one: Seen) -> bool:
    """Has the thread ended that takes the results of a pool, while the one that looks after its workers lives? No result comes any more."""
    return bool(one.process.threads) and _keeps(one, "_handle_workers") and not _keeps(one, "_handle_results")


def feeder_at_work(one: Seen) -> SeenThread | None:
    """The thread that hands out the tasks of a pool, where it is inside of the program for the next one: then no task is lost, it was not made."""
    return next((t for t in one.threads if t.place.path and any(_is_in(f, "_handle_tasks") for f in t.frames)), None)


def held_feeder(one: Seen) -> SeenThread | None:
    """That thread, where it waits for another thread of its process."""
    feeder = feeder_at_work(one)
    return feeder if feeder is not None and feeder.place.kind in THREAD_WAITS else None


def fetching_feeder(one: Seen) -> SeenThread | None:
    """That thread, where what it is to hand out next has to come from another process, a file or a connection."""
    feeder = feeder_at_work(one)
    return feeder if feeder is not None and feeder.place.kind in _FETCHES else None


_FETCHES = frozenset({Kind.FILE, Kind.FLOCK, Kind.SOCKET, Kind.CHILD, Kind.CHANNEL, Kind.MP_QUEUE})


def ended_workers(one: Seen) -> int:
    """How many of its children ended during the window, where it waits for a pool that replaces them."""
    waits = one.kind is Kind.MP_QUEUE and _keeps(one, "_handle_workers")
    return sum(e.ppid == one.process.pid and not e.was_dead for e in one.node.ended) if waits else 0


def ends_in_vain(one: Seen) -> bool:
    """Did workers of a pool end during the window, one after the other, while nothing woke the thread that takes their results?"""
    thread = taker(one)
    if thread is None or thread.run_slices is None:
        return False
    return ended_workers(one) >= _ENDS and thread.run_slices <= 2 * len(one.process.samples)
