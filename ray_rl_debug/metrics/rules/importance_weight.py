"""RRD702 importance weight away from 1

Story
    importance_weight is the ratio of the policy that learns to the one just before it. Its average leaves 1: an update moves the policy too far, or
    the same policy gives different probabilities twice.

Evidence
    The metric's average against 1 over several steps, and the number of minibatches where it is known.

Remedy
    Reduce ppo_n_minibatches. With ppo_n_minibatches 1 the ratio is 1 by definition; if it is not, which is common with mixture-of-experts models,
    make the forward pass deterministic: actor.megatron.use_deterministic_algorithms=1.

Not this when
    Single steps are off, or the average came back: the median of several steps counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from sys import modules

from ray_rl_debug.metrics.bench import Bench
from ray_rl_debug.metrics.model import Judgement
from ray_rl_debug.metrics.quantities import Quantity
from ray_rl_debug.metrics.shapes import Said, judge_limit, near_one

ID = "RRD702"
NAME = "importance weight away from 1"
RULE = modules[__name__]


def judge(bench: Bench) -> Iterator[Judgement]:
    """The average, with a narrower band where there is one minibatch."""
    minibatches = bench.number("ppo_n_minibatches")
    single = "make the forward pass deterministic (actor.megatron.use_deterministic_algorithms=1), as mixture-of-experts models need it"
    if minibatches == 1:
        remedy: tuple[str, ...] = (single,)
    elif minibatches is None:
        remedy = ("reduce ppo_n_minibatches", f"if it is 1 already: {single}")
    else:
        remedy = (f"reduce ppo_n_minibatches (now {minibatches:g})", f"if it stays away from 1 with 1 minibatch: {single}")
    limit = near_one(bench.threshold("importance_weight_single" if minibatches == 1 else "importance_weight"))
    yield from judge_limit(RULE, bench, Quantity.IMPORTANCE_WEIGHT, limit, lambda _: Said(remedy=remedy))
