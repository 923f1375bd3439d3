"""One JSON document with a list of rows: ``trainer_state.json`` of Hugging Face's Trainer (``log_history``), or a list alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ray_rl_debug.metric_sources import jsonl
from ray_rl_debug.metric_sources.gathered import Gathered
from ray_rl_debug.metric_sources.lines import open_lines
from ray_rl_debug.model.errors import UnreadableFileError

MAX_CHARS = 256 << 20
"""A larger document is not read whole."""


def read(path: Path, into: Gathered, names: Mapping[str, str]) -> None:
    """All rows of its longest list of objects.

    Raises:
        UnreadableFileError: it is too large, damaged, or holds no such list.
    """
    with open_lines(path) as f:
        try:
            text = f.read(MAX_CHARS + 1)
        except (EOFError, OSError, ValueError) as e:
            raise UnreadableFileError(f"{path}: damaged ({e})") from e
    if len(text) > MAX_CHARS:
        raise UnreadableFileError(f"{path}: a JSON document of more than {MAX_CHARS >> 20} million characters", hint="write one row for each line")
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError) as e:
        raise UnreadableFileError(f"{path}: no whole JSON document ({e})", hint="a file of rows has one JSON object on each line") from e
    lists = whole.values() if isinstance(whole, dict) else (whole,)
    rows: list[Any] = max((one for one in lists if isinstance(one, list)), key=_rows, default=[])
    if not _rows(rows):
        raise UnreadableFileError(f"{path}: no list of rows is in this JSON document", hint="give a log, JSON lines, CSV, or trainer_state.json")
    jsonl.add_rows(path, ((row if isinstance(row, dict) else None) for row in rows), into, names, form="JSON document")


def _rows(one: list[Any]) -> int:
    return sum(isinstance(row, dict) for row in one)
