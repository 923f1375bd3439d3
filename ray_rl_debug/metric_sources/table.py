"""A table with one row for each step: CSV or TSV, as W&B, TensorBoard and pandas export it."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path

from ray_rl_debug.metric_sources.gathered import STEP_NAMES, Gathered, as_number
from ray_rl_debug.metric_sources.lines import read_lines
from ray_rl_debug.model.errors import UnreadableFileError, UsageError


def read(path: Path, into: Gathered, names: Mapping[str, str]) -> None:
    """All rows. An empty cell is a value that was not written.

    Raises:
        UnreadableFileError: no column holds the step.
        UsageError: columns of several runs.
    """
    cut: list[str] = []
    lines = (line.replace("\0", "") for line in read_lines(path, cut))
    first = next(lines, "")
    separator = max(",\t;", key=first.count)
    rows = _rows(itertools.chain([first], lines), separator)
    head = next(rows, [])
    column = _step_column(head, names)
    if column is None:
        wanted = names.get("step", " or ".join(STEP_NAMES[:3]))
        raise UnreadableFileError(f"{path}: no column is called {wanted}", hint="name the column of the step: --map step=COLUMN")
    head = _without_run(path, head)
    used = bad = 0
    for row in rows:
        step = as_number(row[column]) if column < len(row) else None
        if step is None or not abs(step) < 1 << 53:
            bad += 1
            continue
        used += 1
        for name, cell in zip(head, row, strict=False):
            if name and name != head[column] and cell.strip() and (value := as_number(cell)) is not None:
                into.add(int(step), name, value)
    into.sources.append(f"{path.name}: table, {used:,} rows")
    if bad:
        into.trouble(str(path), f"{bad:,} rows hold no number of a step")
    for reason in cut:
        into.trouble(str(path), reason)


def _without_run(path: Path, head: list[str]) -> list[str]:
    """The names as the run wrote them.

    W&B exports ``RUN - METRIC`` and, for runs that are drawn together, its smallest and largest value, ``__MIN`` and ``__MAX``; these two are no
    metrics of a run and get no name.

    Raises:
        UsageError: columns of several runs.
    """
    drawn = [h for h in head if f"{h}__MIN" in head and f"{h}__MAX" in head and " - " in h]
    if not drawn:
        return head
    runs = list(dict.fromkeys(h.split(" - ", 1)[0] for h in drawn))
    if len(runs) > 1:
        shown = ", ".join(runs[:4]) + (", ..." if len(runs) > 4 else "")
        raise UsageError(f"{path} holds {len(runs)} runs", hint=f"export one of them alone: {shown}")
    return ["" if h.endswith(("__MIN", "__MAX")) else h.removeprefix(f"{runs[0]} - ") for h in head]


def _rows(lines: Iterator[str], separator: str) -> Iterator[list[str]]:
    reader = csv.reader(lines, delimiter=separator)
    while True:
        try:
            yield next(reader)
        except StopIteration:
            return
        except csv.Error:
            continue  # a cell beyond the limit of the csv module: that row is lost


def _step_column(head: list[str], names: Mapping[str, str]) -> int | None:
    lower = [h.strip().lower() for h in head]
    for name in (names["step"].lower(),) if "step" in names else STEP_NAMES:
        if name in lower:
            return lower.index(name)
    return None
