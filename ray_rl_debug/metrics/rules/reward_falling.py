"""RRD707 reward falls

Story
    The reward rose or stood, and then falls: the policy collapses, or the reward function changed its mind (a service that fails gives 0).

Evidence
    The step at which the reward turns, how far it fell, and the p of the test that compares this with autocorrelated noise.

Remedy
    Compare samples from before and after that step. Look at entropy, KL and gradient norm at that step: the first of them to move is nearest to the
    cause. Go back to a checkpoint before it, with a lower learning rate.

Not this when
    The training data become harder at that step by design (a curriculum): the reward of the test set, whose prompts stay the same, does not fall
    then. Beside it a small fall of the training reward is good, and a large one that comes at once is *possible*. Without a test a small fall is told
    as *possible*: rewards that wander slowly make such by themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from sys import modules

from ray_rl_debug.metrics.advice import SYNCHRONOUS
from ray_rl_debug.metrics.bench import Bench
from ray_rl_debug.metrics.judging import bad, drift, drift_of_few, good, seen_apart, short, too_short, unknown
from ray_rl_debug.metrics.model import Judgement
from ray_rl_debug.metrics.quantities import Quantity
from ray_rl_debug.metrics.tested import test_that_holds
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
    train = bench.one(Quantity.REWARD)

    def is_large(before: float, now: float) -> bool:
        return now < before - limit

    for series in (s for s in (train, *bench.all(Quantity.TEST_REWARD)) if s is not None):
        early = too_short(RULE, series, bench.count("min_trend"))
        if early is None:
            found = drift(bench, series, up=False, is_large=is_large, logarithm=False)
        else:
            found = drift_of_few(bench, series, up=False, is_large=is_large)
        if found is None:
            apart = seen_apart(series, up=False, is_large=is_large) if early is None else None
            yield early or (good(RULE, series.name, "does not fall") if apart is None else unknown(RULE, series.name, apart))
            continue
        text = f"{series.name} falls: {found.text()}"
        is_small = found.before - found.now <= sure
        is_sure = not is_small and not found.is_doubtful
        holds = test_that_holds(bench, found.first_step, limit / 2) if series is train else None
        if holds is not None and is_small:
            yield good(RULE, series.name, f"falls by {short(found.before - found.now)} since step {found.first_step}, and {holds.name} does not")
            continue
        if holds is not None and found.is_step:
            text += f"; {holds.name} does not, so its prompts may have become harder"
            is_sure = False
        certainty = Certainty.LIKELY if is_sure else Certainty.POSSIBLE
        yield bad(RULE, series.name, certainty, text, found.first_step, remedy=REMEDY, evidence=(found.evidence(),))
