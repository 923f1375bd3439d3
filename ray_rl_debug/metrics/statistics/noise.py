"""How strongly neighbours in a series resemble each other, and what that costs: autocorrelated noise looks like a trend."""

from __future__ import annotations

from collections.abc import Sequence

from ray_rl_debug.metrics.statistics.numeric import load

SPIKE = 5.0
"""Robust standard deviations from the median of its neighbours beyond which a single value is a spike (a validation, a checkpoint)."""
SPIKE_WINDOW = 7
MOST_RHO = 0.95


def autocorrelation(residuals: Sequence[float]) -> float:
    """Lag-1 autocorrelation of residuals, corrected for its bias in short series, between 0 and 0.95.

    The correction is (1 + 4 r) / n, after Marriott and Pope (1954) for a series whose mean and slope were estimated. Negative ones count as 0: that
    makes tests more careful.
    """
    np, _ = load()
    values = np.asarray(residuals, dtype=float)
    values = values - values.mean()
    total = float(values @ values)
    if len(values) < 4 or total <= 0:
        return 0.0
    rho = float(values[1:] @ values[:-1]) / total
    rho += (1 + 4 * rho) / len(values)
    return min(max(rho, 0.0), MOST_RHO)


def effective_size(n: int, rho: float) -> float:
    """How many independent values an AR(1) series of `n` is worth for its mean: n (1 - rho) / (1 + rho) (Bayley and Hammersley, 1946)."""
    return max(3.0, n * (1 - rho) / (1 + rho))


def without_spikes(values: Sequence[float]) -> list[float]:
    """The values, single ones that stand far out replaced by the median of their neighbours (Hampel's filter)."""
    np, _ = load()
    x = np.asarray(values, dtype=float)
    if len(x) < SPIKE_WINDOW:
        return list(x)
    half = SPIKE_WINDOW // 2
    padded = np.pad(x, half, mode="reflect")
    medians = np.median(np.lib.stride_tricks.sliding_window_view(padded, SPIKE_WINDOW), axis=1)
    distance = np.abs(x - medians)
    scale = 1.4826 * float(np.median(distance))
    return [float(v) for v in np.where(distance > SPIKE * scale, medians, x)] if scale > 0 else [float(v) for v in x]
