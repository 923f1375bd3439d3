"""A source that grows while it is read, and what is new in it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from ray_rl_debug.metrics.model import Judgement, MetricsReport, Run, Status
from ray_rl_debug.metrics.quantities import Quantity, find
from ray_rl_debug.model.report import Certainty

SHOWN = (Quantity.REWARD, Quantity.TEST_REWARD, Quantity.GRAD_NORM, Quantity.ENTROPY, Quantity.STEP_TIME)
"""Beside the step of a line, the last part of their names."""
MAX_FILES = 2000


class Follower:
    """Has a source changed since it was read last?"""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = paths
        self._before: tuple[tuple[str, int, int], ...] | None = None

    def has_changed(self) -> bool:
        """True the first time, and whenever a file of it was written since."""
        now = tuple(sorted(_facts(self._paths)))
        changed, self._before = now != self._before, now
        return changed


def _facts(paths: Iterable[Path]) -> Iterable[tuple[str, int, int]]:
    count = 0
    for path in paths:
        files = [Path(base, n) for base, _, names in os.walk(path) for n in names] if path.is_dir() else [path]
        for file in files:
            count += 1
            if count > MAX_FILES:
                return
            try:
                facts = file.stat()
            except OSError:
                continue  # replaced at this moment
            yield str(file), facts.st_size, facts.st_mtime_ns


class News:
    """What a report says that the one before did not."""

    def __init__(self) -> None:
        self._told: dict[tuple[str, str], Certainty | None] = {}

    def take(self, report: MetricsReport) -> tuple[list[Judgement], list[tuple[str, str]]]:
        """Findings that are new or surer than before, and rules with their metrics that are good again."""
        now = {(f.id, f.metric): f for f in report.findings}
        new = [
            f for key, f in now.items() if key not in self._told or (self._told[key] is Certainty.POSSIBLE and f.certainty is not Certainty.POSSIBLE)
        ]
        judged = {(j.id, j.metric) for j in report.judged if j.status is Status.GOOD}
        over = [key for key in self._told if key not in now and key in judged]
        self._told = {**{k: c for k, c in self._told.items() if k not in over}, **{key: f.certainty for key, f in now.items()}}
        return new, over


def line_of(run: Run, names: dict[str, str]) -> str:
    """The last step in one line: ``step 141  score 0.43  grad_norm 0.5``."""
    steps = run.steps()
    if not steps:
        return "no step yet"
    parts = [f"step {steps[-1]}"]
    for quantity in SHOWN:
        for name in find(quantity, run.series, names)[:1]:
            at, values = run.series[name].finite()
            if at:
                parts.append(f"{quantity.value} {values[-1]:.4g}")
    return "  ".join(parts)
