"""A run in MLflow's folder of files: ``metrics/NAME`` holds a line ``time value step`` for each value, ``params/NAME`` one setting.

The form is plain text and older than any version in use, so that MLflow itself, with its database and server, is not needed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from ray_rl_debug.metric_sources.gathered import Gathered, as_number
from ray_rl_debug.metric_sources.lines import read_lines

MAX_FILES = 20_000
_ENDED = re.compile(r"end_time: \d")
_AT = re.compile(r"_at_(?=\d+(?:/|$))")


def runs_in(folder: Path) -> list[Path]:
    """The folders of runs in an MLflow folder, or the folder itself where it is one of a run."""
    if is_run(folder):
        return [folder]
    return sorted(p for depth in ("*", "*/*") for p in folder.glob(depth) if is_run(p))


def is_run(folder: Path) -> bool:
    return (folder / "metrics").is_dir() and (folder / "meta.yaml").is_file()


def own_name(name: str) -> str:
    """A metric as verl calls it: its adapter writes ``val-core/gsm8k/acc/mean@1`` as ``mean_at_1``, since MLflow takes no ``@``."""
    return _AT.sub("@", name) if name.startswith("val-") else name


def own_setting(name: str) -> str:
    """A setting with dots in its name, as other loggers write it."""
    return name.replace("/", ".")


def read(folder: Path, into: Gathered) -> None:
    """All metrics and parameters of one run."""
    told: list[tuple[float, int, str, float]] = []
    bad = 0
    for path in _files(folder / "metrics"):
        name = own_name(path.relative_to(folder / "metrics").as_posix())
        cut: list[str] = []
        try:
            for line in read_lines(path, cut):
                parts = line.split()
                step = as_number(parts[2]) if len(parts) == 3 else 0.0
                value = as_number(parts[1]) if len(parts) in (2, 3) else None
                if value is None or step is None or not abs(step) < 1 << 53:
                    bad += 1
                    continue
                told.append((as_number(parts[0]) or 0.0, int(step), name, value))
        except OSError as e:
            into.trouble(str(path), f"cannot be read: {e.strerror}")
    for _, number, name, value in sorted(told, key=lambda one: one[0]):  # each metric has a file of its own; the time tells what came after what
        into.add(number, name, value)
    for path in _files(folder / "params"):
        try:
            text = next(read_lines(path, []), "").strip()
        except OSError:
            continue
        if text:
            into.keep_setting(own_setting(path.relative_to(folder / "params").as_posix()), text)
    into.is_ended = _is_ended(folder / "meta.yaml")
    into.sources.append(f"{folder.name}: MLflow folder, {len(told):,} values")
    if bad:
        into.trouble(str(folder), f"{bad:,} lines are damaged; the others were used")


def _is_ended(meta: Path) -> bool | None:
    try:
        return True if any(_ENDED.match(line) for line in read_lines(meta, [])) else None
    except OSError:
        return None


def _files(folder: Path) -> Iterator[Path]:
    count = 0
    for base, _, names in os.walk(folder):
        for name in sorted(names):
            count += 1
            if count > MAX_FILES:
                return
            yield Path(base, name)
