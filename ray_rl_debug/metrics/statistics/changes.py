"""Where does a series change its course? One step, slope or bend on top of a straight trend, tested against autocorrelated noise.

For each place tau and width w the series is fitted by least squares with ``a + b t + c f(t)``, where f is 0 before tau, rises over w values, and
stays: w = 1 is a step, w without end a bend (segmented regression, Quandt 1958). The statistic is the largest part of the residual sum of squares
that one such term explains. Because the place was searched for, no table gives its p; it comes from a Monte Carlo test
(``scipy.stats.monte_carlo_test``): the same search on series of AR(1) noise around a straight line, with the autocorrelation and the residuals of
this series. So a healthy trend is no change, and a slow wander is none either.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ray_rl_debug.metrics.statistics.noise import autocorrelation, without_spikes
from ray_rl_debug.metrics.statistics.numeric import load

MAX_POINTS = 400
"""Longer series are tested as medians of blocks; the place is then looked for in all values around it."""
RESAMPLES = 999
EDGE = 4
"""Values on each side of a change at least."""
ENDLESS = 1 << 30
WIDTHS = (1, 8, 24, ENDLESS)
"""Of the test; the place is then found with more of them."""
FINE_WIDTHS = (1, 2, 3, 4, 6, 8, 11, 14, 18, 23, 29, 36, 45, 56, 70, ENDLESS)
FINE_PLACES = 16
"""How far from the place of the test the best one is looked for, in blocks."""
FINE_SPAN = 100
"""Values on each side that are looked at then."""
SIMPLER = 1.01
"""A step, or else a bend, is taken where it leaves at most so much more than the best slope."""
SEED = 7


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """The one change that explains most."""

    position: int
    """Of the first value after its beginning."""
    width: int | None
    """Values until it is complete, 1 for a step; None for one that goes on."""
    size: float
    """What it has added by the last value."""
    noise: float
    """Standard deviation around the fit."""
    p: float


def find_change(values: Sequence[float], *, seed: int = SEED) -> Change | None:
    """The change of a series of finite values; None when the series is too short or nothing in it varies."""
    np, stats = load()
    y = np.asarray(without_spikes(values), dtype=float)
    if len(y) < 3 * EDGE:
        return None
    block = -(-len(y) // MAX_POINTS)
    blocks = np.array([np.median(part) for part in np.array_split(y, len(y) // block)]) if block > 1 else y
    n = len(blocks)
    places, widths = _grid(np.arange(EDGE, n - EDGE + 1), WIDTHS)
    shapes = _shapes(n, places, widths)
    gains = _gains(shapes, blocks[None, :])[0]
    best = int(gains.argmax())
    if not np.isfinite(gains[best]) or gains[best] <= 1e-12:
        return None
    left = _residuals(blocks, shapes[best])
    rho = autocorrelation(left)
    innovations = left[1:] - rho * left[:-1]
    innovations -= innovations.mean()
    generator = np.random.default_rng(seed)
    warm_up = 50

    def noise(size: tuple[int, ...]) -> Any:
        drawn = generator.choice(innovations, size=(*size[:-1], size[-1] + warm_up))
        for i in range(1, drawn.shape[-1]):
            drawn[..., i] += rho * drawn[..., i - 1]
        return drawn[..., warm_up:]

    def strongest(rows: Any, axis: int) -> Any:
        return _gains(shapes, np.atleast_2d(rows)).max(axis=1)

    found = stats.monte_carlo_test(blocks, noise, strongest, vectorized=True, n_resamples=RESAMPLES, alternative="greater")
    position, width = _locate(y, int(places[best]) * block, block)
    return Change(
        position=position,
        width=None if width >= ENDLESS else width,
        size=_coefficient(blocks, shapes[best]) * float(shapes[best][-1]),
        noise=float(left.std()),
        p=float(np.asarray(found.pvalue).reshape(-1)[0]),
    )


def find_variance_change(values: Sequence[float]) -> tuple[int, float]:
    """The place from which values spread more or less (the most likely one for normal noise of two widths), and the p of no such change.

    It is that of Levene's test on both sides (the form of Brown and Forsythe), times the number of places that were tried.
    """
    np, stats = load()
    y = np.asarray(values, dtype=float)
    y = y - np.median(y)
    n = len(y)
    squares = np.cumsum(y * y)
    places = np.arange(EDGE, n - EDGE)
    before = squares[places - 1] / places
    after = (squares[-1] - squares[places - 1]) / (n - places)
    tiny = max(squares[-1] / n * 1e-9, 1e-300)
    cost = places * np.log(np.maximum(before, tiny)) + (n - places) * np.log(np.maximum(after, tiny))
    place = int(places[cost.argmin()])
    p = float(stats.levene(y[:place], y[place:], center="median").pvalue)
    return place, min(1.0, p * len(places)) if p == p else 1.0


def _grid(places: Any, widths: Sequence[int]) -> tuple[Any, Any]:
    np, _ = load()
    return np.tile(places, len(widths)), np.repeat(np.asarray(widths), len(places))


def _shapes(n: int, places: Any, widths: Any) -> Any:
    """One change in each row."""
    np, _ = load()
    return np.clip(np.arange(n)[None, :] - places[:, None] + 1.0, 0.0, widths[:, None])


def _without_line(rows: Any) -> Any:
    """Rows without their straight lines."""
    np, _ = load()
    n = rows.shape[-1]
    t = np.arange(n) - (n - 1) / 2
    rows = rows - rows.mean(axis=-1, keepdims=True)
    return rows - ((rows @ t) / (t @ t))[..., None] * t


def _gains(shapes: Any, rows: Any) -> Any:
    """For each row of values and each shape: the part of the residual sum of squares that the shape explains."""
    np, _ = load()
    flat, y = _without_line(shapes), _without_line(rows)
    explained = (y @ flat.T) ** 2 / np.maximum((flat * flat).sum(axis=1), 1e-12)
    return explained / np.maximum((y * y).sum(axis=1, keepdims=True), 1e-300)


def _coefficient(values: Any, shape: Any) -> float:
    flat = _without_line(shape[None, :])[0]
    return float((_without_line(values[None, :])[0] @ flat) / (flat @ flat))


def _residuals(values: Any, shape: Any) -> Any:
    return _without_line((values - _coefficient(values, shape) * shape)[None, :])[0]


def _locate(y: Any, about: int, block: int) -> tuple[int, int]:
    """Place and width in the full series, near where the test found it."""
    np, _ = load()
    span, reach = FINE_SPAN * block, FINE_PLACES * block
    low, high = max(0, about - span), min(len(y), about + span)
    near = np.arange(max(low + EDGE, about - reach), min(high - EDGE, about + reach) + 1)
    places, widths = _grid(near - low, FINE_WIDTHS)
    left = 1 - _gains(_shapes(high - low, places, widths), y[None, low:high])[0]
    simple = left.min() * SIMPLER
    for width in (1, ENDLESS, *FINE_WIDTHS):
        of_width = np.where(widths == width, left, np.inf)
        if of_width.min() <= simple:
            break
    return int(places[int(of_width.argmin())]) + low, int(width)
