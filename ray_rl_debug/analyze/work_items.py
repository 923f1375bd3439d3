"""Which piece of work a pool's worker is at: its identity changes from item to item, whatever the item's own stack shows."""

from __future__ import annotations

import itertools

from ray_rl_debug.analyze.library_frames import short_name
from ray_rl_debug.model.snapshot import Frame, Node, Process, ThreadSample

_ITEMS: dict[tuple[str, str], tuple[str, ...]] = {
    ("concurrent/futures/thread.py", "run"): ("self",),
    ("concurrent/futures/process.py", "_process_worker"): ("call_item",),
    ("multiprocessing/pool.py", "worker"): ("job", "i"),
}
"""Locals of the frames that run an item: its address, or the number of the job and of the item in it."""


def works_on(node: Node, process: Process) -> bool:
    """Did one of its threads come to an item between its first and last sample, or from one to the next?"""
    if not process.samples or process.samples[0].threads == process.samples[-1].threads:
        return False
    before = {t.tid: t for t in process.samples[0].threads}
    known = [t for t in process.samples[-1].threads if t.locals and t.tid is not None and t.tid in before]
    return any(_is_new(node, before[thread.tid], thread) for thread in known)


def took_turn(node: Node, process: Process) -> bool:
    """Did a worker that waited for the lock of its queue get it during the window, or one that had it take a task? Neither wait has a time limit."""
    met = [
        next(((short_name(f[0].function), f[0].file) for t in sample.threads if t.tid == process.pid and (f := _frames(node, t))), None)
        for sample in process.samples
    ]
    return any(a != b and a in _TURNS and b in _TURNS for a, b in itertools.pairwise(met))


_TURNS = (("__enter__", "multiprocessing/synchronize.py"), ("_recv", "multiprocessing/connection.py"))


def is_child_of_pool(node: Node, process: Process) -> bool:
    """Did multiprocessing start it? Its tasks come and its results go through pipes."""
    threads = process.samples[-1].threads if process.samples else ()
    frames = (f for t in threads if t.name == "MainThread" or t.tid == process.pid for f in _frames(node, t))
    return process.kind == "child" and any(f.file.endswith("multiprocessing/process.py") and short_name(f.function) == "_bootstrap" for f in frames)


def _is_new(node: Node, before: ThreadSample, after: ThreadSample) -> bool:
    """Is it at another item than before? A local that one look did not read tells nothing."""
    now, was = _item(node, after), _item(node, before)
    return now is not None and None not in now and now != was and (was is None or None not in was)


def _item(node: Node, thread: ThreadSample) -> tuple[str | None, ...] | None:
    """What names the item that a thread works on, None for what was not read; None at all outside of pools."""
    frames = _frames(node, thread)
    wanted = [(i, name) for i, f in enumerate(frames) for name in _ITEMS.get((f.file, short_name(f.function)), ())]
    told = {(local.frame, local.name): local.value for local in thread.locals}
    return tuple(told.get(one) for one in wanted) or None


def _frames(node: Node, thread: ThreadSample) -> tuple[Frame, ...]:
    stack = node.stacks[thread.stack] if 0 <= thread.stack < len(node.stacks) else ()
    return tuple(node.frames[i] for i in stack if 0 <= i < len(node.frames))
