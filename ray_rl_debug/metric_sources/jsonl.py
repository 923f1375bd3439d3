"""One JSON object per line: verl's file logger, or any other; gzipped or not.

verl writes ``{"step": 3, "data": {metric: value}}``. Other loggers write the metrics beside the step.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ray_rl_debug.metric_sources.gathered import STEP_NAMES, Gathered, as_step, flat
from ray_rl_debug.metric_sources.lines import read_lines

CONTAINERS = frozenset(("data", "metrics", "values", "scalars", "logs"))
"""Names under which loggers put all metrics of a row; they say nothing of a metric."""
SETTINGS_OF_ROW = ("config",)
"""Ray Tune writes the whole configuration into each row; it is no metric."""


def read(path: Path, into: Gathered, names: Mapping[str, str]) -> None:
    """All rows; a line that cannot be read is counted, the others are used."""
    cut: list[str] = []
    add_rows(path, (_parsed(line) for line in read_lines(path, cut) if line.strip()), into, names, form="JSON lines")
    for reason in cut:
        into.trouble(str(path), reason)


def _parsed(line: str) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def add_rows(path: Path, rows: Iterable[dict[str, Any] | None], into: Gathered, names: Mapping[str, str], *, form: str) -> None:
    """Rows of any source; None stands for one that could not be read."""
    damaged = stepless = used = 0
    for row in _whole_rows(rows, names):
        if row is None:
            damaged += 1
            continue
        step = _step(row, names)
        if step is None:
            stepless += 1
            continue
        used += 1
        data = row.get("data")
        into.add_row(step, _of_verl(data) if isinstance(data, dict) and "step" in row else _without_steps(row, names.get("step")))
    into.sources.append(f"{path.name}: {form}, {used:,} rows")
    if damaged:
        into.trouble(str(path), f"lines that are no JSON objects: {damaged:,}; the others were used")
    if stepless:
        into.trouble(str(path), f"lines without a step: {stepless:,} ({', '.join(STEP_NAMES[:3])}; name it with --map step=COLUMN)")


def _whole_rows(rows: Iterable[dict[str, Any] | None], names: Mapping[str, str]) -> Iterator[dict[str, Any] | None]:
    """The rows; a mapping of columns gives one for each value of the column of steps."""
    for row in rows:
        wanted = (names["step"],) if "step" in names else STEP_NAMES
        steps = next((row[name] for name in wanted if isinstance(row.get(name), list)), None) if row is not None else None
        if row is None or not isinstance(steps, list):
            yield row
            continue
        columns = {name: values for name, values in row.items() if isinstance(values, list) and len(values) == len(steps)}
        for at in range(len(steps)):
            yield {name: values[at] for name, values in columns.items() if values[at] is not None}


def _step(row: Mapping[str, Any], names: Mapping[str, str]) -> int | None:
    wanted = (names["step"],) if "step" in names else STEP_NAMES
    flattened = dict(flat(row)) if "step" in names and "/" in names["step"] else row
    for name in wanted:
        if (step := as_step(flattened.get(name))) is not None:
            return step
    return None


def _of_verl(data: Mapping[str, Any]) -> dict[str, Any]:
    """verl's file logger leaves nothing out: its null is a NaN (or an infinite value) that JSON cannot write."""
    return {k: math.nan if v is None else v for k, v in data.items()}


def _without_steps(row: Mapping[str, Any], step: str | None) -> dict[str, Any]:
    told: dict[str, Any] = {}
    for name, value in row.items():
        if name in CONTAINERS and isinstance(value, Mapping):
            told |= value
        elif name != step and name not in STEP_NAMES and name not in SETTINGS_OF_ROW:
            told[name] = value
    return told
