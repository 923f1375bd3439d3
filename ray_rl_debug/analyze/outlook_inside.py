"""Rows of the table of outlooks about what goes on inside of a process: threads and coroutines of it that may end the wait of the one that counts."""

from __future__ import annotations

from ray_rl_debug.analyze import ends_in_window, handlers, import_locks
from ray_rl_debug.analyze.await_chains import serves_by_name
from ray_rl_debug.analyze.coroutines import is_apart, is_on_its_way, serves
from ray_rl_debug.analyze.edges import Why
from ray_rl_debug.analyze.kinds_of_places import ENDED_BY_LOOPS, THREAD_WAITS
from ray_rl_debug.analyze.outlook_facts import Facts
from ray_rl_debug.model.snapshot import AsyncTask


def imports_in_ring(f: Facts) -> str | None:
    thread = import_locks.imports_in_ring(f.one)
    return f"it runs a module for the first time, and its thread {thread.called} waits for that to end" if thread is not None else None


def fellow_goes_on(f: Facts) -> str | None:
    thread = handlers.fellow_that_goes_on(f.one)
    return f"its thread {thread.called} has work of the same loop, and goes on" if thread is not None else None


def giver_pauses(f: Facts) -> str | None:
    """Its workers wait for what it hands on; not only the thread that waits for them does that."""
    fed = {e.source for e in f.asked if e.why is Why.PIPE} & {e.target for e in f.waits if e.why in (Why.DATALOADER, Why.CHILD_QUEUE)}
    thread = handlers.pausing_giver(f.one) if fed else None
    return f"its thread {thread.called} may have their next piece, and sleeps for some seconds" if thread is not None else None


def helper_pauses(f: Facts) -> str | None:
    thread = handlers.pausing_helper(f.one)
    return f"its thread {thread.called} may end its wait, and sleeps for some seconds" if thread is not None else None


def coroutine_goes_on(f: Facts) -> str | None:
    """Its thread waits for what a loop in another thread should deliver: a coroutine there was elsewhere at the second read."""
    if f.one.kind not in ENDED_BY_LOOPS or f.one.place is None or f.one.place.on_loop:
        return None
    tasks = (t for t in f.one.process.async_tasks or () if is_on_its_way(t) and not is_apart(t))
    task = next((t for t in tasks if not serves(t) or _is_unplaced(t)), None)
    return f"its coroutine {task.name} went on while it was looked at, and may end its wait" if task is not None else None


def _is_unplaced(task: AsyncTask) -> bool:
    """Is the file of its coroutines unknown, and does no name of theirs say that they serve? It may be of own code."""
    return all(frame.file is None and not serves_by_name(frame.function) for frame in task.chain)


def library_goes_on(f: Facts) -> str | None:
    return f"{f.one.motion_reason}; a thread of a library sleeps for a time and may end its wait" if handlers.library_goes_on(f.one) else None


def helper_unread(f: Facts) -> str | None:
    """It left Python, or the last look missed it; or the kernel did not tell of it."""
    if f.one.left and f.one.kind in THREAD_WAITS:
        return f"{f.one.motion_reason}; the last look did not meet its thread {f.one.left[0].called}, which may have ended this wait"
    thread = handlers.unread_helper(f.one)
    return f"its thread {thread.called} may end its wait; in which call of the kernel that one is was not read" if thread is not None else None


def helper_works(f: Facts) -> str | None:
    thread = handlers.working_helper(f.one)
    return f"its thread {thread.called} may end its wait, and works" if thread is not None else None


def came_to_end(f: Facts) -> str | None:
    return "its thread has ended since the last look, so what it did is done" if ends_in_window.came_to_end(f.one) else None


def threads(f: Facts) -> str | None:
    return "a thread of it ended or began during the window, and it joins threads" if ends_in_window.thread_ended(f.one) else None
