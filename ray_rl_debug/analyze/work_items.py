"""Which piece of work a pool's worker is at: its identity changes from item to item, whatever the item's own stack shows."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from ray_rl_debug.analyze.library_frames import short_name
from ray_rl_debug.model.snapshot import Frame, Node, Process, ThreadSample

_ITEMS: dict[tuple[str, str], frozenset[str]] = {
    ("concurrent/futures/thread.py", "run"): frozenset({"self"}),
    ("concurrent/futures/process.py", "_process_worker"): frozenset({"call_item"}),
    ("multiprocessing/pool.py", "worker"): frozenset({"job", "i"}),
}
"""Locals of the frames that run an item: its address, or the number of the job and of the item in it."""
_NAMES = frozenset().union(*_ITEMS.values())


def item_of(sample: ThreadSample, frames: Sequence[Frame]) -> str | None:
    """The item that a thread works on; None outside of pools, and where locals were not read."""
    found = tuple(f"{local.name} {local.value}" for local in sample.locals if _names(frames, local.frame, local.name))
    return " ".join(found) or None


def works_on(node: Node, process: Process) -> bool:
    """Did the process come from one item to the next between its first and last sample?"""
    if not process.samples or process.samples[0].threads == process.samples[-1].threads:
        return False
    first, last = (frozenset(_items(node, sample.threads)) for sample in (process.samples[0], process.samples[-1]))
    return bool(first) and bool(last - first)


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


def _items(node: Node, threads: Sequence[ThreadSample]) -> Iterator[str]:
    for thread in threads:
        item = item_of(thread, _frames(node, thread)) if any(local.name in _NAMES for local in thread.locals) else None
        if item is not None:
            yield item


def _frames(node: Node, thread: ThreadSample) -> tuple[Frame, ...]:
    stack = node.stacks[thread.stack] if 0 <= thread.stack < len(node.stacks) else ()
    return tuple(node.frames[i] for i in stack if 0 <= i < len(node.frames))


def _names(frames: Sequence[Frame], position: int, name: str) -> bool:
    if not 0 <= position < len(frames):
        return False
    frame = frames[position]
    return name in _ITEMS.get((frame.file, short_name(frame.function)), frozenset())
