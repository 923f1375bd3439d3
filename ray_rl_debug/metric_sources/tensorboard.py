"""TensorBoard's event files, read by TensorBoard's own reader (extra ``tensorboard``)."""

from __future__ import annotations

import logging
from collections.abc import Collection
from pathlib import Path
from typing import Any

from ray_rl_debug.metric_sources.gathered import Gathered
from ray_rl_debug.model.errors import MissingExtraError

MARK = ".tfevents."
PARTS = frozenset(("train", "training", "eval", "evaluation", "val", "valid", "validation", "test"))
"""Folders that writers make for the parts of one run, beside each other."""


def files_in(folder: Path) -> list[Path]:
    """Event files of a folder, oldest first; writers begin a new one at each restart."""
    return sorted(folder.rglob(f"*{MARK}*"), key=lambda p: (p.name, str(p)))


def are_parts(folders: Collection[Path]) -> bool:
    """Are these the parts of one run, not several runs?"""
    return len({f.parent for f in folders}) == 1 and all(f.name.lower() in PARTS for f in folders)


def read(path: Path, into: Gathered, part: str = "") -> None:
    """All scalars of one event file; those of a part are named after it where they are not yet.

    Raises:
        MissingExtraError: TensorBoard is not installed.
    """
    try:
        from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
        from tensorboard.compat.proto.types_pb2 import DT_STRING
        from tensorboard.util import tensor_util
    except ImportError as e:
        raise MissingExtraError(f"event files need TensorBoard's reader ({e})", hint="pip install 'ray-rl-debug[tensorboard]'") from e
    logging.getLogger("tensorboard").setLevel(logging.ERROR)
    values = events = 0
    try:
        for event in EventFileLoader(str(path)).Load():
            events += 1
            for one in event.summary.value:
                value = _scalar(one, tensor_util, DT_STRING)
                if value is not None:
                    values += 1
                    into.add(int(event.step), one.tag if one.tag.startswith(part) else part + one.tag, value)
    except Exception as e:  # noqa: BLE001 the reader raises errors of protobuf, TensorFlow and its own for files that are cut or damaged
        into.trouble(str(path), f"damaged after {values:,} values, which were used ({type(e).__name__})")
    if not events:
        into.trouble(str(path), "no event could be read: the file is damaged, or none of TensorBoard's")
    into.sources.append(f"{path.name}: TensorBoard events, {values:,} values")


def _scalar(one: Any, tensor_util: Any, string_type: int) -> float | None:
    """The number of a summary; None for histograms, images and texts."""
    if one.HasField("simple_value"):
        return float(one.simple_value)
    if not one.HasField("tensor") or one.tensor.dtype == string_type:
        return None
    array = tensor_util.make_ndarray(one.tensor)
    return float(array.reshape(-1)[0]) if array.size == 1 else None
