"""RRD704 samples too old

Story
    Samples were made by a policy many versions before the one that learns from them. The correction for that grows, and the gradient points where
    the policy was, not where it is.

Evidence
    The average number of versions between both, over several steps, against max_head_offpolicyness where it is known.

Remedy
    Reduce max_head_offpolicyness (AReaL) or the staleness threshold of the asynchronous trainer (verl); find out why rollouts take so long.

Not this when
    The run allows that much on purpose and its weights stay near 1: then set --threshold staleness=VALUE.
"""

from __future__ import annotations

from collections.abc import Iterator
from sys import modules

from ray_rl_debug.metrics.advice import SYNCHRONOUS
from ray_rl_debug.metrics.bench import Bench
from ray_rl_debug.metrics.judging import bad, beyond, good, too_short
from ray_rl_debug.metrics.model import Judgement
from ray_rl_debug.metrics.quantities import Quantity

ID = "RRD704"
NAME = "samples too old"
RULE = modules[__name__]


def judge(bench: Bench) -> Iterator[Judgement]:
    """The average age of samples against what the run allows."""
    allowed = bench.number("max_head_offpolicyness")
    limit = allowed if allowed is not None else bench.threshold("staleness")
    told = f"at most {limit:g}" + (" (max_head_offpolicyness)" if allowed is not None else "")
    for series in bench.all(Quantity.STALENESS):
        if (early := too_short(RULE, series, bench.count("min_points"))) is not None:
            yield early
            continue
        found = beyond(bench, series, lambda v: v > limit)
        if found is None:
            yield good(RULE, series.name, told, high=limit)
            continue
        remedy = ("reduce max_head_offpolicyness, or the staleness that the trainer allows", "look which rollouts take so long", SYNCHRONOUS)
        yield bad(RULE, series.name, found.certainty, f"{series.name} is {found.text(told)}", found.first_step, high=limit, remedy=remedy)
