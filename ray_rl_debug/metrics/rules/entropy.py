"""RRD714 entropy collapses

Story
    The entropy of the policy falls to a small part of what it was: answers become alike, groups of equal rewards teach nothing, and the reward
    stops to rise.

Evidence
    The step at which the entropy begins to fall, what is left of it, and the p of the test.

Remedy
    A larger entropy coefficient or a wider upper clip (clip_ratio_high); sample at temperature 1; a lower learning rate; prompts that are not yet
    solved.

Not this when
    The reward is near its best: then a small entropy is the success of the training. A slow fall is usual; only what is left below a part of the
    start counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from sys import modules

from ray_rl_debug.metrics.bench import Bench
from ray_rl_debug.metrics.judging import Drift
from ray_rl_debug.metrics.model import Judgement, Series
from ray_rl_debug.metrics.quantities import Quantity
from ray_rl_debug.metrics.shapes import Said, judge_drift

ID = "RRD714"
NAME = "entropy collapses"
RULE = modules[__name__]
REMEDY = (
    "a larger entropy coefficient, or a wider upper clip (clip_ratio_high)",
    "sample at temperature 1; take prompts that are not solved yet",
    "a lower learning rate, from a checkpoint before that step",
)


def judge(bench: Bench) -> Iterator[Judgement]:
    """What is left of the entropy."""
    factor = bench.threshold("entropy_fall")

    def say(_: Series, found: Drift) -> Said:
        return Said(remedy=REMEDY, before=f"falls to {max(found.factor, 0):.0%} of what it was: ")

    fine = f"more than {factor:.0%} of it is left"
    yield from judge_drift(RULE, bench, Quantity.ENTROPY, say, up=False, is_large=lambda before, now: before > 0 and now < factor * before, fine=fine)
