"""What the test set says of a training reward that does not rise, or falls: its prompts stay the same, those of the training may become harder."""

from __future__ import annotations

import statistics

from ray_rl_debug.metrics.bench import Bench
from ray_rl_debug.metrics.judging import drift_of_few
from ray_rl_debug.metrics.model import Series
from ray_rl_debug.metrics.quantities import Quantity

BEFORE, SINCE = 3, 2
"""Tests before a step and from it on, whose medians are compared: a word in favour of a run needs few."""


def rising_test(bench: Bench, limit: float) -> Series | None:
    """A test reward that has risen by the limit over the run; its values lie apart, so their noise is taken for independent."""
    for test in bench.all(Quantity.TEST_REWARD):
        if drift_of_few(bench, test, up=True, is_large=lambda before, now: now > before + limit) is not None:
            return test
    return None


def test_that_holds(bench: Bench, since: int, limit: float) -> Series | None:
    """A test reward that has not fallen by the limit since a step; None also where none was measured often enough on both sides."""
    for test in bench.all(Quantity.TEST_REWARD):
        rows = list(zip(*test.finite(), strict=True))
        before, after = [v for s, v in rows if s < since][-BEFORE:], [v for s, v in rows if s >= since][-BEFORE:]
        if len(before) == BEFORE and len(after) >= SINCE and statistics.median(after) > statistics.median(before) - limit:
            return test
    return None
