"""Frames of data loaders: torch's own, and that of torchdata, whose state can be saved and which trainers of RL use instead."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ray_rl_debug.analyze.library_frames import short_name
from ray_rl_debug.model.snapshot import Frame

_LOADERS = ("torch/utils/data/dataloader.py", "torchdata/stateful_dataloader/stateful_dataloader.py")
_WORKERS = ("torch/utils/data/_utils/worker.py", "torchdata/stateful_dataloader/worker.py")
_WAITS = frozenset("_try_get_data _get_data _next_data _try_get_batch _get_batch _shutdown_workers".split())


def waits_at_loader(frames: Sequence[Frame], names: Sequence[str], at: int) -> bool:
    """Does a frame of a loader wait for the next batch, for its workers to end, or for them to begin?"""
    if not frames[at].file.endswith(_LOADERS):
        return False
    name, inside = names[at], names[:at]
    return name in _WAITS or (at == 0 and name == "__next__") or (name == "__init__" and _starts_child(inside))


def _starts_child(inside: Sequence[str]) -> bool:
    return "_launch" in inside or "_Popen" in inside or inside[-1:] == ["start"]


def runs_loader_worker(frames: Iterable[Frame]) -> bool:
    """Is it a stack of a process that loads batches for its parent?"""
    return any(f.file.endswith(_WORKERS) and short_name(f.function) == "_worker_loop" for f in frames)
