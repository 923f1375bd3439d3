"""Values as they come from a source, in any order, to a run."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ray_rl_debug.metrics.model import Rollouts, Run, Series
from ray_rl_debug.metrics.quantities import framework_of
from ray_rl_debug.model import gaps
from ray_rl_debug.model.snapshot import Gap

MAX_VALUES = 20_000_000
"""Ten thousand steps of two thousand metrics; more is a mistake."""
MAX_NAME = 300
MAX_STEP = 1 << 53
MAX_SETTING = 100
TEXTS = ("rollout.name", "rollout.mode", "adv_estimator", "loss_mode", "strategy", "dtype", "trainer_mode", "kl_loss_type")
"""Settings whose values are words of the frameworks."""
_SECRET = re.compile(r"key|token|secret|passw|credential|user|mail", re.IGNORECASE)
STEP_NAMES = (
    "step",
    "global_step",
    "training/global_step",
    "train/global_step",
    "trainer/global_step",
    "_step",
    "iteration",
    "train_step",
    "training_iteration",
    "time/iterations",
    "current_steps",
    "global_step/max_steps",
)
"""Under which a table holds the number of the step, the best first."""


class Gathered:
    """What one source, or several of one run, have told so far.

    A step that is told twice keeps its last value. Where a source goes back and tells a step anew, the run has begun again from a checkpoint: later
    steps, which it told before that, belong to a course that is no more.
    """

    def __init__(self, label: str) -> None:
        self.label = label
        self.settings: dict[str, str] = {}
        self.is_ended: bool | None = None
        self.rollouts: Rollouts | None = None
        self.sources: list[str] = []
        self._values: dict[str, dict[int, float | None]] = {}
        self._count = 0
        self._latest = -1
        self._went_back: list[int] = []
        self._gaps: list[Gap] = []

    def add(self, step: int, name: str, value: float | None) -> None:
        """One value; None for a null of the source."""
        if not 0 <= step < MAX_STEP or self._count >= MAX_VALUES:
            return
        self._count += 1
        values = self._values.setdefault(name[:MAX_NAME], {})
        if step < self._latest and step in values and _differ(values[step], value):
            self._go_back(step)
        self._latest = max(self._latest, step)
        values[step] = value

    def count_rollouts(self, running: int, accepted: int, rejected: int) -> None:
        """What an executor has counted so far; counts that fall are those of one that was started anew."""
        before = self.rollouts
        is_alike = before is not None and before.accepted == accepted and before.rejected <= rejected
        since = before.rejected_since + rejected - before.rejected if before is not None and is_alike else rejected if accepted == 0 else 0
        self.rollouts = Rollouts(running=running, accepted=accepted, rejected=rejected, rejected_since=since)

    def _go_back(self, step: int) -> None:
        """Forget later steps than this one, which is told anew with another value."""
        self._went_back.append(step)
        self._latest = step
        for values in self._values.values():
            for later in [s for s in values if s > step]:
                del values[later]

    def take(self, other: Gathered) -> None:
        """What another source of the same run told; where both tell a value, that one counts."""
        for name, values in other._values.items():
            self._values.setdefault(name, {}).update(values)
        self._count += other._count
        self.settings.update(other.settings)
        self.is_ended = other.is_ended if other.is_ended is not None else self.is_ended
        self.rollouts = other.rollouts or self.rollouts
        self.sources += other._told_sources()
        self._gaps += other._gaps

    def add_row(self, step: int, row: Mapping[str, Any]) -> None:
        """All numbers of one step; mappings inside mappings give names with slashes."""
        for name, value in flat(row):
            self.add(step, name, value)

    def keep_setting(self, name: str, value: object) -> None:
        """Keep a setting that can be no secret: a number, a switch, or one of the few texts that rules ask for.

        Configurations hold keys of loggers, paths and names of people; what is kept stands in reports.
        """
        text = str(value).strip()
        is_plain = as_number(value) is not None or text.lower() in ("true", "false", "none")
        if len(text) <= MAX_SETTING and (is_plain or name.endswith(TEXTS)) and not _SECRET.search(name):
            self.settings[name] = text

    def trouble(self, where: str, reason: str) -> None:
        """Something that could not be read, and why."""
        self._gaps.append(Gap(id=gaps.FILE_UNREAD, where=where, what="metrics", reason=reason))

    def run(self) -> Run:
        """The run, its metrics by name."""
        series = {}
        for name in sorted(n for n, values in self._values.items() if values):
            values = self._values[name]
            steps = tuple(sorted(values))
            series[name] = Series(name=name, steps=steps, values=tuple(values[s] for s in steps))
        if self._count >= MAX_VALUES:
            self.trouble(self.label, f"more than {MAX_VALUES:,} values; the first ones were used")
        return Run(
            label=self.label,
            framework=framework_of(series),
            series=series,
            settings=self.settings,
            sources=tuple(self._told_sources()),
            is_ended=self.is_ended,
            rollouts=self.rollouts,
            gaps=tuple(self._gaps),
        )

    def _told_sources(self) -> list[str]:
        if not self._went_back:
            return self.sources
        times = "once" if len(self._went_back) == 1 else f"{len(self._went_back)} times"
        told = f"the run goes back {times}, at last to step {self._went_back[-1]}; what it told of later steps before is left out"
        return [*self.sources, told]


def _differ(one: float | None, other: float | None) -> bool:
    return one != other and not (one != one and other != other)


def as_step(value: object) -> int | None:
    """The number of a step, also as ``5/120``; None for anything else."""
    number = as_number(value.partition("/")[0] if isinstance(value, str) else value)
    return int(number) if number is not None and abs(number) < MAX_STEP else None


def flat(row: Mapping[str, Any], before: str = "", depth: int = 0) -> Iterator[tuple[str, float | None]]:
    """Names and numbers of a mapping; what is neither a number nor null is left out."""
    for key, value in row.items():
        name = f"{before}{key}"
        if isinstance(value, Mapping) and depth < 8:
            yield from flat(value, f"{name}/", depth + 1)
        elif value is None:
            yield name, None
        elif (found := as_number(value)) is not None:
            yield name, found


def as_number(value: object) -> float | None:
    """A number, also one that a logger wrote as text (``nan``, ``Infinity``, ``np.float64(0.5)``); None for anything else."""
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, (int, float)):
        try:
            return float(value)
        except OverflowError:
            return math.inf
    if not isinstance(value, str) or len(value) > 64:
        return None
    text = value.strip()
    if text.endswith(")") and "(" in text:
        text = text[text.index("(") + 1 : -1]
    try:
        return float(text)
    except ValueError:
        return None


def flat_settings(row: Mapping[str, Any], before: str = "", depth: int = 0) -> Iterator[tuple[str, object]]:
    """Settings with dots in their names; lists are left out."""
    for key, value in row.items():
        name = f"{before}{key}"
        if isinstance(value, Mapping) and depth < 8:
            yield from flat_settings(value, f"{name}.", depth + 1)
        elif isinstance(value, (str, int, float, bool)):
            yield name, value
