"""RRD708 reward varies too much

Story
    The reward jumps from step to step by a large part of its range. The gradient does as well, and much of the training is noise.

Evidence
    The standard deviation of the reward around its trend, as part of the range of single rewards, and since when.

Remedy
    Raise the batch size: twice the samples make the noise smaller by a third. More answers per prompt, or a reward with fewer steps, do the same.

Not this when
    The batch is small on purpose (a test run); or rewards are so rare that any batch holds a few only.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from itertools import pairwise
from sys import modules

from ray_rl_debug.metrics.bench import Bench
from ray_rl_debug.metrics.judging import bad, good, short, too_short
from ray_rl_debug.metrics.model import Judgement
from ray_rl_debug.metrics.quantities import Quantity
from ray_rl_debug.metrics.statistics.changes import find_variance_change
from ray_rl_debug.model.report import Certainty

ID = "RRD708"
NAME = "reward varies too much"
RULE = modules[__name__]
LATEST = 20
REMEDY = (
    "raise the batch size: twice the samples make the noise smaller by a third",
    "more answers per prompt, or a reward with finer steps, do the same",
)


def judge(bench: Bench) -> Iterator[Judgement]:
    """Differences of neighbours show the noise, whatever the trend."""
    series = bench.one(Quantity.REWARD)
    if series is None:
        return
    if (early := too_short(RULE, series, bench.count("min_trend"))) is not None:
        yield early
        return
    steps, values = series.finite()
    limit = bench.threshold("reward_noise")
    span = bench.reward_range()
    jumps = [b - a for a, b in pairwise(values)]
    place, p = find_variance_change(jumps)
    was_calm = p <= bench.threshold("alpha") and _noise(jumps[:place]) < _noise(jumps[place:])
    now = max(_noise(jumps[-LATEST:]), _noise(jumps[place:]) if was_calm else 0.0)  # of twenty jumps alone the noise is known to a quarter
    if now <= limit * span:
        yield good(RULE, series.name, f"varies by {short(now)}, {now / span:.0%} of its range")
        return
    first = steps[place + 1] if was_calm else steps[0]
    begun = f"since step {first} (before: {short(_noise(jumps[:place]))})" if was_calm else "all along"
    text = f"{series.name} varies by {short(now)} from step to step, {now / span:.0%} of its range, {begun}; wanted: at most {limit:.0%}"
    yield bad(RULE, series.name, Certainty.LIKELY, text, first, remedy=REMEDY)


def _noise(jumps: list[float]) -> float:
    """Standard deviation of single values, from the median size of the jumps between neighbours."""
    return 1.4826 * statistics.median(abs(j) for j in jumps) / 2**0.5 if jumps else 0.0
