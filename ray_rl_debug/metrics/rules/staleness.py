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
from ray_rl_debug.metrics.model import Judgement
from ray_rl_debug.metrics.quantities import Quantity
from ray_rl_debug.metrics.shapes import Said, at_most, judge_limit

ID = "RRD704"
NAME = "samples too old"
RULE = modules[__name__]
REMEDY = ("reduce max_head_offpolicyness, or the staleness that the trainer allows", "look which rollouts take so long", SYNCHRONOUS)


def judge(bench: Bench) -> Iterator[Judgement]:
    """The average age of samples against what the run allows."""
    allowed = bench.number("max_head_offpolicyness")
    limit = at_most(bench.threshold("staleness")) if allowed is None else at_most(allowed, f"at most {allowed:g} (max_head_offpolicyness)")
    yield from judge_limit(RULE, bench, Quantity.STALENESS, limit, lambda _: Said(remedy=REMEDY))
