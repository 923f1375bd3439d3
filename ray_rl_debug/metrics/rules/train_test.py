"""RRD709 train and test reward part

Story
    The reward on training prompts rises while that on the test set does not follow: the policy learns the prompts or a weakness of the reward,
    not the task. The other way round, training data do not teach what the test asks.

Evidence
    The distance between both at the steps of the test, and the step from which it grows.

Remedy
    Train reward up, test not: stop at the checkpoint before that step; read samples with high reward for tricks; more or other prompts. Test
    reward up, train not: look at quality and difficulty of the training data, and that both sets are alike.

Not this when
    Both rewards are counted in different ways (penalties in one of them only): then the distance changes for other reasons. Prompts became harder
    at a step by design, and both rewards rise on after it.
"""

from __future__ import annotations

import statistics
from bisect import bisect_right
from collections.abc import Iterator
from sys import modules

from ray_rl_debug.metrics.bench import Bench
from ray_rl_debug.metrics.judging import bad, drift, drift_of_few, good, short, unknown
from ray_rl_debug.metrics.model import Judgement, Series
from ray_rl_debug.metrics.quantities import Quantity
from ray_rl_debug.metrics.statistics.trends import trend
from ray_rl_debug.model.report import Certainty

ID = "RRD709"
NAME = "train and test reward part"
RULE = modules[__name__]
SMOOTH = 5
"""Training values up to a test, at most, whose mean is compared with it; fewer where tests are closer."""
AFTER = 4
"""Tests after a change that it takes to say whether the test reward rises."""
LEARNED = (
    "stop at the checkpoint before that step",
    "read samples with a high reward: do they trick the reward function?",
    "more or other training prompts, a stronger KL penalty",
)
NOT_TAUGHT = (
    "look at quality and difficulty of the training data, and whether both sets are alike",
    "filter prompts that are always or never solved",
)


def judge(bench: Bench) -> Iterator[Judgement]:
    """The distance, up and down."""
    train = bench.one(Quantity.REWARD)
    if train is None:
        return
    limit = bench.threshold("test_gap") * bench.reward_range()
    for test in bench.all(Quantity.TEST_REWARD):
        gap = _gap(train, test)
        _, values = gap.finite()
        if len(values) < bench.count("min_trend"):
            parted = drift_of_few(bench, gap, up=True, is_large=lambda before, now: now - before > limit)
            if parted is None:
                yield unknown(RULE, test.name, f"{len(values)} of the {bench.count('min_trend')} tests that it takes to judge")
            else:
                text = f"{train.name} leaves {test.name} behind: distance {parted.text()}"
                yield bad(RULE, test.name, Certainty.POSSIBLE, text, parted.first_step, remedy=LEARNED, evidence=(parted.evidence(),))
            continue
        up = drift(bench, gap, up=True, is_large=lambda before, now: now - before > limit, logarithm=False)
        down = drift(bench, gap, up=False, is_large=lambda before, now: before - now > limit, logarithm=False)
        found = up or down
        if found is None:
            yield good(RULE, test.name, f"stays {short(statistics.median(values))} from {train.name}")
            continue
        follows = _rises_after(test, found.first_step, limit / 2)
        if up is not None:
            text = f"{train.name} leaves {test.name} behind: distance {found.text()}"
            certainty = Certainty.POSSIBLE if follows or found.is_doubtful else Certainty.LIKELY
            yield bad(RULE, test.name, certainty, text, found.first_step, remedy=LEARNED, evidence=(found.evidence(),))
        elif follows and not _rises_after(train, found.first_step, limit / 2):
            text = f"{test.name} rises, {train.name} does not follow: distance {found.text()}"
            yield bad(RULE, test.name, Certainty.POSSIBLE, text, found.first_step, remedy=NOT_TAUGHT, evidence=(found.evidence(),))
        else:
            yield good(RULE, test.name, f"rises as {train.name} does" if follows else f"does not rise while {train.name} falls")


def _rises_after(reward: Series, step: int, limit: float) -> bool:
    after = [(s, v) for s, v in zip(*reward.finite(), strict=True) if s >= step]
    return len(after) >= AFTER and trend([s for s, _ in after], [v for _, v in after]).gain > limit


def _gap(train: Series, test: Series) -> Series:
    """Training reward (mean of the last values up to the test) less test reward, at each test."""
    at, values = train.finite()
    pairs = []
    before = 0
    for step, value in zip(*test.finite(), strict=True):
        upto = bisect_right(at, step)
        if upto > before:
            pairs.append((step, statistics.fmean(values[max(before, upto - SMOOTH) : upto]) - value))
        before = upto
    return Series(name=f"{train.name} - {test.name}", steps=tuple(s for s, _ in pairs), values=tuple(v for _, v in pairs))
