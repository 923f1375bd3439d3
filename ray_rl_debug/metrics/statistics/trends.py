"""Does a series rise or fall? Mann-Kendall's test and the slope of Theil and Sen, both corrected for autocorrelation.

Both look at signs of differences only, so spikes and skewed noise do not matter. The variance of Kendall's S is that of a series of the effective
size (Yue and Wang, 2004): for the test with the longest memory that the values around their line allow, for the interval with the likeliest. Without
it the test calls about every second random walk a trend.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from ray_rl_debug.metrics.statistics.noise import effective_size, most_likely, most_persistent
from ray_rl_debug.metrics.statistics.numeric import load

MAX_POINTS = 800
"""Theil and Sen compare every pair; longer series are thinned evenly."""


class Trend(msgspec.Struct, frozen=True, kw_only=True):
    """The straight line through a series."""

    gain: float
    """Rise from the first to the last value, along the line,"""
    gain_low: float
    """and the 95 % interval of it, which holds that of least squares too: where values have many ties, Theil and Sen's is too narrow."""
    gain_high: float
    p: float
    """Of no trend, two-sided."""
    noise: float
    """Robust standard deviation around the line."""
    points: int


def trend(steps: Sequence[int], values: Sequence[float]) -> Trend:
    """The trend of at least four values."""
    np, stats = load()
    keep = np.unique(np.linspace(0, len(values) - 1, min(len(values), MAX_POINTS)).round().astype(int))
    x, y = np.asarray(steps, dtype=float)[keep], np.asarray(values, dtype=float)[keep]
    slope, intercept, low, high = (float(v) for v in stats.theilslopes(y, x))
    left = y - intercept - slope * x
    straight = stats.linregress(x, y)
    error = float(stats.t.ppf(0.975, len(y) - 2)) * float(straight.stderr)
    low, high = min(low, float(straight.slope) - error), max(high, float(straight.slope) + error)
    tau = stats.kendalltau(x, y)
    size, worst = (effective_size(len(y), noise(left)) for noise in (most_likely, most_persistent))
    statistic = float(stats.norm.isf(max(float(tau.pvalue), 1e-300) / 2)) if math.isfinite(float(tau.pvalue)) else 0.0
    p = float(2 * stats.norm.sf(statistic * math.sqrt(worst / len(y))))
    span, wider = float(x[-1] - x[0]), math.sqrt(len(y) / size)
    return Trend(
        gain=slope * span,
        gain_low=(slope + (low - slope) * wider) * span,
        gain_high=(slope + (high - slope) * wider) * span,
        p=min(p, 1.0),
        noise=1.4826 * float(np.median(np.abs(left - np.median(left)))),
        points=len(values),
    )
