"""RRD701 metric is not a number

Story
    A metric is NaN, infinite or null. From a loss, a gradient norm or a KL it goes into the weights at the next update, and everything after it
    is lost.

Evidence
    The metric, the first step at which it is no number, and the metrics that follow at later steps: the first one is nearest to the cause.

Remedy
    Go back to the last checkpoint before that step. Look at the samples of that step: an empty or fully masked response divides by zero. Take the
    KL penalty out once (verl: algorithm.use_kl_in_reward=False), to see whether it is the term that overflows.

Not this when
    The metric compares two things that do not vary, such as a correlation of constant values: then only that metric is null, and it is told as
    *possible*; where it never was a number, nothing is said. A metric that is measured every so many steps only (validation) may be null, or NaN, at
    all others.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from itertools import pairwise
from sys import modules

from ray_rl_debug.metrics.bench import Bench
from ray_rl_debug.metrics.judging import bad, good
from ray_rl_debug.metrics.model import Judgement, Series
from ray_rl_debug.model.report import Certainty

ID = "RRD701"
NAME = "metric is not a number"
RULE = modules[__name__]

_LEARNING = re.compile(r"loss|grad_norm|kl|entropy|reward|score|advantages|returns|importance_weight|logp", re.IGNORECASE)
_STATISTIC = re.compile(r"corr|std|ppl|explained_var|rollout_corr/", re.IGNORECASE)
MOST = 4
RHYTHM = 5
"""Numbers of a metric from which the distance between them says how often it is measured."""


def judge(bench: Bench) -> Iterator[Judgement]:
    """What goes into the weights first; then the others, as one judgement."""
    broken = sorted((b for s in bench.run.series.values() if (b := _first(s))), key=lambda pair: (pair[0], pair[1].name))
    deciding = [(step, s) for step, s in broken if _goes_into_weights(s)]
    others = [(step, s) for step, s in broken if (step, s) not in deciding]
    if deciding:
        step, series = deciding[0]
        yield bad(RULE, series.name, Certainty.PROVEN, f"{series.name} is {_word(series, step)} at step {step}{_more(deciding)}", step, remedy=REMEDY)
    if others:
        step, series = others[0]
        yield bad(RULE, series.name, Certainty.POSSIBLE, f"{series.name} is {_word(series, step)} at step {step}{_more(others)}", step)
    if not broken and bench.run.series:
        yield good(RULE, "all metrics", f"all values of {len(bench.run.series)} metrics are numbers")


REMEDY = (
    "go back to the last checkpoint before that step",
    "look at the samples of that step: empty or fully masked responses divide by zero",
    "take the KL penalty out once (verl: algorithm.use_kl_in_reward=False) to see whether it overflows",
)


def _goes_into_weights(series: Series) -> bool:
    return _LEARNING.search(series.name) is not None and _STATISTIC.search(series.name) is None


def _first(series: Series) -> tuple[int, Series] | None:
    """The first step at which a metric is no number; one that never was a number is not measured at all, or compares what does not vary."""
    may_be_nan = not _goes_into_weights(series)
    if len(series.values) > 1 and all(v is None or (may_be_nan and math.isnan(v)) for v in series.values):
        return None
    begin = _measured_until(series)
    step = next((s for s, v in zip(series.steps[begin:], series.values[begin:], strict=True) if v is None or not math.isfinite(v)), None)
    return (step, series) if step is not None else None


def _measured_until(series: Series) -> int:
    """For a metric that is measured every so many steps, the place up to which the gaps between its numbers are such; 0 for all others.

    Some loggers write a row with all names at each step, and null or NaN for what was not measured at it.
    """
    at = [i for i, v in enumerate(series.values) if v is not None and math.isfinite(v)]
    if len(at) < RHYTHM or any(v is not None and math.isinf(v) for v in series.values):
        return 0
    gaps = {b - a for a, b in pairwise(at[1:-1])}  # the first and the last may be extra: before the training, and at its end
    every = max(gaps)
    if gaps != {every} or every < 2 or at[0] > every or at[-1] - at[-2] > every:
        return 0
    return min(at[-1] + every, len(series.values))


def _word(series: Series, step: int) -> str:
    value = series.values[series.steps.index(step)]
    return "null" if value is None else "NaN" if math.isnan(value) else "infinite"


def _more(found: list[tuple[int, Series]]) -> str:
    names = [f"{s.name} (step {step})" for step, s in found[1:]]
    if not names:
        return ""
    return f", then {', '.join(names[:MOST])}" + (f" and {len(names) - MOST} more" if len(names) > MOST else "")
