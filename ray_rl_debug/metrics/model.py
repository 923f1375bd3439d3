"""A run as its metrics tell it, what the rules say of it, and the contract of ``metrics --json`` (schema ``rayrl-debug/metrics/1``)."""

from __future__ import annotations

import enum
import math

import msgspec

from ray_rl_debug.model.report import Certainty
from ray_rl_debug.model.snapshot import Gap

SCHEMA = "rayrl-debug/metrics/1"


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """Base of the structures here: immutable, fields by name."""


class Series(Part, frozen=True, kw_only=True):
    """One metric over the steps, steps rising; a null of the source is None, NaN and Inf are kept."""

    name: str
    """As the source writes it."""
    steps: tuple[int, ...]
    values: tuple[float | None, ...]

    def finite(self) -> tuple[tuple[int, ...], tuple[float, ...]]:
        """Steps and values that are numbers."""
        kept = [(s, v) for s, v in zip(self.steps, self.values, strict=True) if v is not None and math.isfinite(v)]
        return tuple(s for s, _ in kept), tuple(v for _, v in kept)


class Rollouts(Part, frozen=True, kw_only=True):
    """What the executor of the rollouts counts, as it told last."""

    running: int
    accepted: int
    rejected: int
    rejected_since: int
    """Since one was accepted last."""


class Run(Part, frozen=True, kw_only=True):
    """All that the sources of one run tell."""

    label: str
    framework: str | None = None
    """``verl``, ``areal``; None when the names tell nothing."""
    series: dict[str, Series] = {}
    """By the name that the source gives."""
    settings: dict[str, str] = {}
    """Settings of the run, where the source tells them or the user did: ``actor.ppo_n_minibatches`` and such."""
    sources: tuple[str, ...] = ()
    """What was read, in words."""
    is_ended: bool | None = None
    """Does the source say that the training has ended? None when it cannot."""
    rollouts: Rollouts | None = None
    gaps: tuple[Gap, ...] = ()

    def steps(self) -> tuple[int, ...]:
        """All steps at which a metric was written."""
        return tuple(sorted({s for one in self.series.values() for s in one.steps}))


class Status(str, enum.Enum):
    """What a rule says of a metric."""

    BAD = "bad"
    GOOD = "good"
    UNKNOWN = "unknown"
    """Too few points, or too much noise, to say."""


class Judgement(Part, frozen=True, kw_only=True):
    """One rule on one metric."""

    id: str
    name: str
    metric: str
    status: Status
    summary: str
    certainty: Certainty | None = None
    """Of a bad one."""
    first_step: int | None = None
    """At which it went wrong."""
    low: float | None = None
    """The band in which the rule wants the metric,"""
    high: float | None = None
    """where it has one."""
    evidence: tuple[str, ...] = ()
    remedy: tuple[str, ...] = ()


class State(str, enum.Enum):
    """The answer."""

    HEALTHY = "healthy"
    TROUBLE = "trouble"
    UNKNOWN = "unknown"


class MetricsVerdict(Part, frozen=True, kw_only=True):
    state: State
    summary: str
    certainty: Certainty
    next: str | None = None
    """The next command to type."""


class SeriesSummary(Part, frozen=True, kw_only=True):
    """One metric in the report."""

    name: str
    points: int
    first_step: int | None
    last_step: int | None
    last: float | None
    quantity: str | None = None
    """What the rules take it for."""


class MetricsReport(Part, frozen=True, kw_only=True):
    """Verdict, findings (the surest first), what was judged good or could not be judged, and what was read."""

    schema: str = SCHEMA
    tool_version: str = ""
    run: str
    framework: str | None = None
    sources: tuple[str, ...] = ()
    verdict: MetricsVerdict
    findings: tuple[Judgement, ...] = ()
    judged: tuple[Judgement, ...] = ()
    series: tuple[SeriesSummary, ...] = ()
    settings: dict[str, str] = {}
    thresholds: dict[str, float] = {}
    gaps: tuple[Gap, ...] = ()


COMPARISON_SCHEMA = "rayrl-debug/metrics-comparison/1"


class Parting(Part, frozen=True, kw_only=True):
    """A metric in which two runs part."""

    metric: str
    quantity: str | None = None
    first_step: int
    from_start: bool
    """They were apart from the first common step on."""
    a_now: float
    b_now: float
    p: float


class Comparison(Part, frozen=True, kw_only=True):
    """Two runs side by side."""

    schema: str = COMPARISON_SCHEMA
    a: str
    b: str
    parted: tuple[Parting, ...] = ()
    """Those that a rule knows first, then by step."""
    alike: int = 0
    """Metrics in which no difference was found."""
    too_short: tuple[str, ...] = ()
    only_a: tuple[str, ...] = ()
    only_b: tuple[str, ...] = ()
    equal_until: int | None = None
    """The last step up to which all metrics but times are exactly equal."""
    steps: int = 0
    """Common steps."""
    settings: dict[str, tuple[str, str]] = {}
    """Settings that differ."""
