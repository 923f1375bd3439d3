"""RRD706 reward does not rise

Story
    The reward has been where it began, for many steps: the run is alive and learns nothing.

Evidence
    The straight line through the reward (Theil and Sen's slope): even the upper end of its 95 % interval is a small part of the reward's range.
    So it is known to be flat; noise that could hide a rise gives *unknown*. A reward whose latest values are all far above its first ones has left
    where it began.

Remedy
    Measure the test set before any training, as a baseline. Train on the test set once: if its reward does not rise either, tune (larger batch,
    higher learning rate), take another base model, or fine-tune it first. If it rises there but not on the training set, look at the quality and
    difficulty of the training data, and filter prompts that are always or never solved.

Not this when
    The reward is near the best one it can have, or the run has hardly begun. The test reward rises: then prompts become harder as fast as the run
    learns (a curriculum).
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from sys import modules

from ray_rl_debug.metrics.advice import SYNCHRONOUS
from ray_rl_debug.metrics.bench import Bench
from ray_rl_debug.metrics.judging import EDGE_NOW, PART, bad, good, short, too_short, unknown
from ray_rl_debug.metrics.model import Judgement
from ray_rl_debug.metrics.quantities import Quantity
from ray_rl_debug.metrics.statistics.trends import trend
from ray_rl_debug.metrics.tested import rising_test
from ray_rl_debug.model.report import Certainty

ID = "RRD706"
NAME = "reward does not rise"
RULE = modules[__name__]

NEAR_BEST = 0.9
"""Part of the range from which there is little left to learn."""
REMEDY = (
    "measure the test set before training, as a baseline",
    "train on the test set once; if its reward does not rise either: larger batch, higher learning rate, another base model, or fine-tune first",
    "if it rises there: look at quality and difficulty of the training data; filter prompts that are always or never solved",
    SYNCHRONOUS,
)


def judge(bench: Bench) -> Iterator[Judgement]:
    """The line through the whole reward, and its upper bound."""
    series = bench.one(Quantity.REWARD)
    if series is None:
        return
    if (early := too_short(RULE, series, bench.count("reward_flat_points"))) is not None:
        yield early
        return
    steps, values = series.finite()
    span = bench.reward_range()
    wanted = bench.threshold("reward_gain") * span
    found = trend(steps, values)
    gain = f"a rise of {found.gain:.3g} over {len(steps)} values (95 %: {found.gain_low:.3g} to {found.gain_high:.3g})"
    if found.gain_low > 0 and found.p <= bench.threshold("alpha"):
        yield good(RULE, series.name, gain)
    elif found.gain_high >= wanted and (risen := _has_left(values, wanted)) is not None:
        yield good(RULE, series.name, risen)
    elif found.gain_high >= wanted:
        doubt = f"{gain}, which slow noise could make by itself" if found.gain_low > 0 else f"{gain}; noise could hide more"
        yield unknown(RULE, series.name, doubt)
    elif (test := rising_test(bench, wanted)) is not None:
        yield good(RULE, series.name, f"flat, while {test.name} rises: the run learns, and its prompts become harder")
    elif _is_near_best(bench, values, span):
        yield good(RULE, series.name, f"flat near the best it can be: {gain}")
    else:
        text = f"{series.name} has been flat since step {steps[0]}, at {short(statistics.median(values))}: {gain}; wanted: more than {short(wanted)}"
        yield bad(
            RULE, series.name, Certainty.LIKELY, text, steps[0], remedy=REMEDY, evidence=("Theil-Sen slope, interval corrected for autocorrelation",)
        )


def _has_left(values: tuple[float, ...], wanted: float) -> str | None:
    """The words for a reward whose latest values are all above its first ones, and far: whatever brought it there, it is not where it began.

    A run that learns fast and then slowly has no straight line that a test could be sure of.
    """
    first, last = values[: max(EDGE_NOW, len(values) // 20)], values[-max(EDGE_NOW, len(values) // PART) :]
    began, now = statistics.median(first), statistics.median(last)
    return f"has left where it began: {short(began)} at first, {short(now)} now" if min(last) > max(first) and now - began >= wanted else None


def _is_near_best(bench: Bench, values: tuple[float, ...], span: float) -> bool:
    best, worst = bench.one(Quantity.REWARD_MAX), bench.one(Quantity.REWARD_MIN)
    if best is None:
        return False
    top = max(best.finite()[1])
    if worst is not None and min(worst.finite()[1]) == top:
        return False  # one reward for everything says nothing about the best one
    return statistics.median(values) >= top - (1 - NEAR_BEST) * span
