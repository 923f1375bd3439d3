"""The two shapes that most rules have: a metric beyond its limit, and a metric that drifts away. What to say of it is the rule's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType

import msgspec

from ray_rl_debug.metrics.bench import Bench
from ray_rl_debug.metrics.judging import Beyond, Drift, bad, beyond, drift, good, seen_apart, too_short, unknown
from ray_rl_debug.metrics.model import Judgement, Series
from ray_rl_debug.metrics.quantities import Quantity
from ray_rl_debug.model.report import Certainty


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """What a rule adds to a finding."""

    remedy: tuple[str, ...]
    before: str = ""
    """In front of what was measured, such as ``rises by a factor of 3: ``,"""
    after: str = ""
    """and behind it."""
    evidence: tuple[str, ...] = ()
    certainty: Certainty = Certainty.LIKELY
    """Of a drift; a metric beyond its limit has that of its stretch."""


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """Where a metric is expected to be."""

    how_far: Callable[[float], float]
    """Beyond it; zero or less inside."""
    told: str
    """``at most 0.05``"""
    low: float | None = None
    high: float | None = None


def at_most(limit: float, told: str | None = None) -> Limit:
    return Limit(how_far=lambda v: v - limit, told=told or f"at most {limit:g}", high=limit)


def near_one(limit: float) -> Limit:
    return Limit(how_far=lambda v: abs(v - 1) - limit, told=f"within {limit:g} of 1", low=1 - limit, high=1 + limit)


def judge_limit(rule: ModuleType, bench: Bench, quantity: Quantity, limit: Limit, say: Callable[[Beyond], Said]) -> Iterator[Judgement]:
    """Each metric of a quantity against one limit."""
    for series in bench.all(quantity):
        if (early := too_short(rule, series, bench.count("min_points"))) is not None:
            yield early
            continue
        found = beyond(bench, series, limit.how_far)
        if found is None:
            yield good(rule, series.name, limit.told, low=limit.low, high=limit.high)
            continue
        said = say(found)
        text = f"{series.name} is {found.text(limit.told)}{said.after}"
        more = {"low": limit.low, "high": limit.high, "remedy": said.remedy, "evidence": said.evidence}
        yield bad(rule, series.name, found.certainty, text, found.first_step, **more)


def judge_drift(
    rule: ModuleType,
    bench: Bench,
    quantity: Quantity,
    say: Callable[[Series, Drift], Said | str],
    *,
    up: bool,
    is_large: Callable[[float, float], bool],
    fine: str,
    is_judged: Callable[[Series], bool] = lambda _: True,
    prepare: Callable[[Series], Series] = lambda series: series,
) -> Iterator[Judgement]:
    """Each metric of a quantity: has it left where it was?

    Args:
        say: the words for a drift; a text alone says why it is none to worry about.
        is_large: of the values before and now: is that worth a word?
        fine: what is said of a metric that has not drifted.
        is_judged: metrics for which this is False are passed over, as long as they are long enough to be judged.
        prepare: what is tested in place of the metric.
    """
    for series in bench.all(quantity):
        if (early := too_short(rule, series, bench.count("min_trend"))) is not None:
            yield early
            continue
        if not is_judged(series):
            continue
        found = drift(bench, prepare(series), up=up, is_large=is_large)
        if found is None:
            apart = seen_apart(series, up=up, is_large=is_large)
            yield good(rule, series.name, fine) if apart is None else unknown(rule, series.name, apart)
            continue
        said = say(series, found)
        if isinstance(said, str):
            yield good(rule, series.name, said)
            continue
        text = f"{series.name} {said.before}{found.text()}{said.after}"
        certainty = Certainty.POSSIBLE if found.is_doubtful else said.certainty
        yield bad(rule, series.name, certainty, text, found.first_step, remedy=said.remedy, evidence=(found.evidence(), *said.evidence))


def rises_by(factor: float) -> Callable[[float, float], bool]:
    """Is the value now so many times that before?"""
    return lambda before, now: before > 0 and now > factor * before
