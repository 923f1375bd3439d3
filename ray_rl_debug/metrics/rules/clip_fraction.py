"""RRD713 too many tokens clipped

Story
    A large part of the tokens reaches the clip of the policy ratio: each update is larger than the method allows, and much of it is thrown away.

Evidence
    The clip fraction over several steps.

Remedy
    Lower the learning rate, or make fewer updates from one batch (minibatches, epochs). If importance_weight is off too, read RRD702 first.

Not this when
    The clip range is very narrow on purpose (GSPO clips at some 1e-4, where a third and more is usual): set --threshold clip_fraction=VALUE.
"""

from __future__ import annotations

from collections.abc import Iterator
from sys import modules

from ray_rl_debug.metrics.bench import Bench
from ray_rl_debug.metrics.model import Judgement
from ray_rl_debug.metrics.quantities import Quantity
from ray_rl_debug.metrics.shapes import Said, at_most, judge_limit

ID = "RRD713"
NAME = "too many tokens clipped"
RULE = modules[__name__]
REMEDY = (
    "lower the learning rate, or make fewer updates from one batch (minibatches, epochs)",
    "read RRD702 first where importance_weight is off too",
)


def judge(bench: Bench) -> Iterator[Judgement]:
    """The fraction against its limit."""
    yield from judge_limit(RULE, bench, Quantity.CLIP_FRACTION, at_most(bench.threshold("clip_fraction")), lambda _: Said(remedy=REMEDY))
