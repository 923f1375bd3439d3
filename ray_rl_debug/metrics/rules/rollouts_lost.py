"""RRD716 rollouts aborted or thrown away

Story
    Rollouts are aborted, or evicted because they failed or grew too old. The compute for them is lost, and those that are left are not a fair
    sample: long and hard ones are lost first.

Evidence
    The ratio of aborted rollouts, the count of evicted ones, over several steps.

Remedy
    Look why: time limits of tools, an engine that preempts for lack of cache, a staleness limit that is too tight for the longest answers.

Not this when
    Partial rollouts are aborted and resumed by design.
"""

from __future__ import annotations

from collections.abc import Iterator
from sys import modules

from ray_rl_debug.metrics.bench import Bench
from ray_rl_debug.metrics.judging import bad, beyond, good, too_short
from ray_rl_debug.metrics.model import Judgement
from ray_rl_debug.metrics.quantities import Quantity

ID = "RRD716"
NAME = "rollouts aborted or thrown away"
RULE = modules[__name__]
REMEDY = (
    "look at time limits of tools and reward services",
    "look whether the engine preempts requests for lack of cache (rayrl-debug metrics --follow --engine URL)",
    "give long answers more time: a higher staleness limit, or partial rollouts",
)


def judge(bench: Bench) -> Iterator[Judgement]:
    """Ratio and counts, each against its limit."""
    for quantity, name in ((Quantity.ABORTED_RATIO, "aborted_ratio"), (Quantity.EVICTED, "evicted_samples")):
        limit = bench.threshold(name)
        for series in bench.all(quantity):
            if (early := too_short(RULE, series, bench.count("min_points"))) is not None:
                yield early
                continue
            found = beyond(bench, series, lambda v, limit=limit: v > limit)  # type: ignore[misc]
            if found is None:
                yield good(RULE, series.name, f"at most {limit:g}", high=limit)
                continue
            text = f"{series.name} is {found.text(f'at most {limit:g}')}"
            yield bad(RULE, series.name, found.certainty, text, found.first_step, high=limit, remedy=REMEDY)
