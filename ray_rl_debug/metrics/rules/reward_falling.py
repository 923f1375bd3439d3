"""RRD707 reward falls

Story
    The reward rose or stood, and then falls: the policy collapses, or the reward function changed its mind (a service that fails gives 0).

Evidence
    The step at which the reward turns, how far it fell, and the p of the test that compares this with autocorrelated noise.

Remedy
    Compare samples from before and after that step. Look at entropy, KL and gradient norm at that step: the first of them to move is nearest to the
    cause. Go back to a checkpoint before it, with a lower learning rate.

Not this when
    The training data become harder at that step by design (a curriculum). A small fall is told as *possible*: rewards that wander slowly make such by
    themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from sys import modules

from ray_rl_debug.metrics.advice import SYNCHRONOUS
from ray_rl_debug.metrics.bench import Bench
from ray_rl_debug.metrics.judging import bad, drift, drift_of_few, good, too_short
from ray_rl_debug.metrics.model import Judgement
from ray_rl_debug.metrics.quantities import Quantity
from ray_rl_debug.model.report import Certainty

ID = "RRD707"
NAME = "reward falls"
RULE = modules[__name__]
REMEDY = (
    "compare samples from before and after that step, and what the reward function gave them",
    "look which of entropy, KL and gradient norm moved first",
    "go back to a checkpoint before that step, with a lower learning rate",
    SYNCHRONOUS,
)


def judge(bench: Bench) -> Iterator[Judgement]:
    """Falls of the training reward, and of test rewards."""
    span = bench.reward_range()
    limit, sure = bench.threshold("reward_fall") * span, bench.threshold("reward_fall_sure") * span
    rewards = [s for s in (bench.one(Quantity.REWARD), *bench.all(Quantity.TEST_REWARD)) if s is not None]
    for series in rewards:
        early = too_short(RULE, series, bench.count("min_trend"))
        if early is None:
            found = drift(bench, series, up=False, is_large=lambda before, now: now < before - limit, logarithm=False)
        else:
            found = drift_of_few(bench, series, up=False, is_large=lambda before, now: now < before - limit)
        if found is None:
            yield early or good(RULE, series.name, "does not fall")
            continue
        text = f"{series.name} falls: {found.text()}"
        certainty = Certainty.LIKELY if found.before - found.now > sure and not found.may_be_noise else Certainty.POSSIBLE
        yield bad(RULE, series.name, certainty, text, found.first_step, remedy=REMEDY, evidence=(found.evidence(),))
