"""Threads that rest, told by name and number: of the fifteen threads of a Ray worker twelve are its libraries' own, asleep in two or three calls."""

from __future__ import annotations

from collections import Counter

import msgspec

from ray_rl_debug.model.snapshot import Process, Thread

RESTS_S = 0.005
"""Of processor time in the window, at most,"""
RESTS_PER_S = 12.0
"""and so often woken by a timer of its own."""
WAITED_S = 0.02
"""Ready to run and without a core for less than this."""
FEWEST = 2
"""Threads of one kind that are worth folding."""


def fold_threads(process: Process) -> Process:
    """The process with one row for all its threads that rested in the same way through the window.

    Threads with a Python stack, the main thread, and those that worked, waited for a core or for a device keep a row of their own. Of the others the
    one that woke most often stands for all that are in the same call; how many there are of each name stands in `idle_threads`.
    """
    met = {t.tid for sample in process.samples for t in sample.threads} | {process.pid}
    often = RESTS_PER_S * (process.window_s or 0.0) + 2 * len(process.samples)
    groups: dict[tuple[object, ...], list[Thread]] = {}
    for thread in process.threads:
        if thread.tid not in met and _rests(thread, often):
            groups.setdefault((thread.wchan, thread.syscall, thread.call), []).append(thread)
    folded: set[int] = set()
    for group in groups.values():
        if len(group) >= FEWEST:
            loudest = max(group, key=lambda t: (t.run_slices or 0, -t.tid))
            folded.update(t.tid for t in group if t is not loudest)
    if not folded:
        return process
    names = Counter(t.comm for t in process.threads if t.tid in folded)
    threads = tuple(t for t in process.threads if t.tid not in folded)
    return msgspec.structs.replace(process, threads=threads, idle_threads=dict(sorted(names.items())))


def _rests(thread: Thread, often: float) -> bool:
    if thread.state != "S" or thread.waits_on_fds is not None:
        return False
    return (thread.cpu_s or 0.0) <= RESTS_S and (thread.run_slices or 0) <= often and (thread.queued_s or 0.0) <= WAITED_S
