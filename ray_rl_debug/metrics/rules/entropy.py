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
    The reward has risen and ends near its best: then a small entropy may be the success of the training, and is only *possible*.
    A slow fall is usual; only what is left below a part of the start counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from sys import modules

from ray_rl_debug.metrics.bench import Bench
from ray_rl_debug.metrics.judging import Drift
from ray_rl_debug.metrics.model import Judgement, Series
from ray_rl_debug.metrics.quantities import Quantity
from ray_rl_debug.metrics.shapes import Said, judge_drift
from ray_rl_debug.model.report import Certainty

ID = "RRD714"
NAME = "entropy collapses"
RULE = modules[__name__]
REMEDY = (
    "a larger entropy coefficient, or a wider upper clip (clip_ratio_high)",
    "sample at temperature 1; take prompts that are not solved yet",
    "a lower learning rate, from a checkpoint before that step",
)


FIFTHS = 5
NEAR_BEST = 0.8
"""So much of the way from its first fifth to its best one the reward still has at the end."""


def judge(bench: Bench) -> Iterator[Judgement]:
    """What is left of the entropy."""
    factor = bench.threshold("entropy_fall")
    success = _ends_at_its_best(bench.one(Quantity.REWARD))

    def say(_: Series, found: Drift) -> Said:
        after = "; the reward has risen meanwhile and ends near its best, so this may be the success of the training" if success else ""
        sure = Certainty.POSSIBLE if success else Certainty.LIKELY
        return Said(remedy=REMEDY, before=f"falls to {max(found.factor, 0):.0%} of what it was: ", after=after, certainty=sure)

    fine = f"more than {factor:.0%} of it is left"
    yield from judge_drift(RULE, bench, Quantity.ENTROPY, say, up=False, is_large=lambda before, now: before > 0 and now < factor * before, fine=fine)


def _ends_at_its_best(reward: Series | None) -> bool:
    """Has the reward risen over the run, and not fallen back?"""
    values = reward.finite()[1] if reward is not None else ()
    size = len(values) // FIFTHS
    if not size:
        return False
    means = [sum(values[n * size : (n + 1) * size]) / size for n in range(FIFTHS)]
    return max(means) > means[0] and means[-1] - means[0] >= NEAR_BEST * (max(means) - means[0])
