"""A run in MLflow's folder of files: ``metrics/NAME`` holds a line ``time value step`` for each value, ``params/NAME`` one setting.

The form is plain text and older than any version in use, so that MLflow itself, with its database and server, is not needed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ray_rl_debug.metric_sources.gathered import Gathered, as_number
from ray_rl_debug.metric_sources.lines import read_lines

MAX_FILES = 20_000


def runs_in(folder: Path) -> list[Path]:
    """The folders of runs in an MLflow folder, or the folder itself where it is one of a run."""
    if is_run(folder):
        return [folder]
    return sorted(p for depth in ("*", "*/*") for p in folder.glob(depth) if is_run(p))


def is_run(folder: Path) -> bool:
    return (folder / "metrics").is_dir() and (folder / "meta.yaml").is_file()


def read(folder: Path, into: Gathered) -> None:
    """All metrics and parameters of one run."""
    values = bad = 0
    for path in _files(folder / "metrics"):
        name = path.relative_to(folder / "metrics").as_posix()
        cut: list[str] = []
        try:
            for line in read_lines(path, cut):
                parts = line.split()
                step = as_number(parts[2]) if len(parts) == 3 else 0.0
                value = as_number(parts[1]) if len(parts) in (2, 3) else None
                if value is None or step is None or not abs(step) < 1 << 53:
                    bad += 1
                    continue
                values += 1
                into.add(int(step), name, value)
        except OSError as e:
            into.trouble(str(path), f"cannot be read: {e.strerror}")
    for path in _files(folder / "params"):
        try:
            text = next(read_lines(path, []), "").strip()
        except OSError:
            continue
        if text:
            into.keep_setting(path.relative_to(folder / "params").as_posix(), text)
    into.sources.append(f"{folder.name}: MLflow folder, {values:,} values")
    if bad:
        into.trouble(str(folder), f"{bad:,} lines are damaged; the others were used")


def _files(folder: Path) -> Iterator[Path]:
    count = 0
    for base, _, names in os.walk(folder):
        for name in sorted(names):
            count += 1
            if count > MAX_FILES:
                return
            yield Path(base, name)
