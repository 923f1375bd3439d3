"""Event loops that sleep although a coroutine of theirs could go on: what it awaited was completed, and nobody woke the loop.

A future that a thread completes itself, and not by ``call_soon_threadsafe``, tells the loop nothing. A loop that sleeps until its next event then
sleeps on.
"""

from __future__ import annotations

from ray_rl_debug.analyze.kernel_calls import kernel_call
from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.limits import FEW_WAKES
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.model.snapshot import AsyncTask

_SLEEPS = frozenset({"epoll", "poll", "select"})


def unwoken(one: Seen) -> AsyncTask | None:
    """A coroutine that could go on at both reads, while the thread of its loop slept through the window and has no clock that ends this."""
    if not one.process.async_tasks:
        return None
    ready = [t for t in one.process.async_tasks if t.awaited is not None and t.awaited.kind == "ready" and t.stable is True]
    return next((t for t in ready if t.tid is not None and _sleeps_on(one, t.tid)), None)


def _sleeps_on(one: Seen, tid: int) -> bool:
    thread = next((t for t in one.threads if t.tid == tid), None)
    if thread is None or thread.kernel is None or thread.place.kind is not Kind.LOOP_IDLE or thread.kernel.run_slices is None:
        return False
    is_endless = thread.kernel.wakes_in_s is None and kernel_call(thread.kernel) in _SLEEPS
    return is_endless and thread.kernel.run_slices <= 2 * one.looks + FEW_WAKES
