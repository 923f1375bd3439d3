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
from ray_rl_debug.metrics.model import Judgement
from ray_rl_debug.metrics.quantities import Quantity
from ray_rl_debug.metrics.shapes import Said, at_most, judge_limit

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
        yield from judge_limit(RULE, bench, quantity, at_most(bench.threshold(name)), lambda _: Said(remedy=REMEDY))
