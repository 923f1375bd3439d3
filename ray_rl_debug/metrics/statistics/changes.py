"""Where does a series change its course? One step, slope or bend on top of a straight trend, tested against noise that remembers.

For each place tau and width w the series is fitted with ``a + b t + c f(t)``, where f is 0 before tau, rises over w values, and stays: w = 1 is a
step, w without end a bend (segmented regression, Quandt 1958). Values and shapes are first made independent by each of some models of the noise
(pre-whitening, `noise`); the statistic is the logarithm of the likelihood ratio of the best fit with a shape and the best without, each with the
noise that suits it. So a step in calm noise is none of a slow wander, and a slow wander is no step.

Because place and noise were searched for, no table gives its p; it comes from a Monte Carlo test (``scipy.stats.monte_carlo_test``): the same search
on straight lines under the most persistent noise that the series allows. Its innovations are those that the change leaves: a large step is no part of
the noise that it is compared with.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import msgspec

from ray_rl_debug.metrics.statistics.noise import Noise, most_persistent, nuisance, without, without_spikes
from ray_rl_debug.metrics.statistics.numeric import load

MAX_POINTS = 400
"""Longer series are tested as medians of blocks; the place is then looked for in all values around it."""
RESAMPLES = 999
FIRST_RESAMPLES = 99
HOPELESS = 0.05
"""Where the first resamples give a larger p, more of them change nothing."""
WARM_UP = 200
EDGE = 4
"""Values on each side of a change at least."""
ENDLESS = 1 << 30
WIDTHS = (1, 8, 24, 48, ENDLESS)
"""Of the test; the place is then found with more of them."""
FINE_WIDTHS = (1, 2, 3, 4, 6, 8, 11, 14, 18, 23, 29, 36, 45, 56, 70, ENDLESS)
FINE_PLACES = 16
"""How far from the place of the test the best one is looked for at least, in values,"""
FINE_BLOCKS = 4
"""and in blocks."""
FINE_SPAN = 100
"""Values on each side that are looked at then, and twice as many blocks as places may be away."""
SIMPLER = 1.01
"""A step, or else a bend, is taken where it leaves at most so much more than the best slope."""
EXACT = 1e-6
"""Of the sum of squares: a fit that leaves less is as good as one that leaves this. Half the digits tell no more."""
SEED = 7
NOISES = tuple(
    Noise(rho, theta)
    for theta, rhos in ((0.0, (0.0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.96, 1.0)), (-0.4, (0.7, 0.9, 1.0)), (-0.7, (0.9, 0.97, 1.0)), (-0.85, (0.97, 1.0)))
    for rho in rhos
)
"""Tried for every shape; the same in the series and in what it is compared with, so that a coarse grid costs power, not truth."""


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
    if len(y) < 3 * EDGE or float(np.ptp(y)) == 0:
        return None
    block = -(-len(y) // MAX_POINTS)
    blocks = np.array([np.median(part) for part in np.array_split(y, len(y) // block)]) if block > 1 else y
    n = len(blocks)
    search = _search(n)
    best = search.best(blocks)
    if best is None:
        return None
    worst = most_persistent(blocks)
    generator = np.random.default_rng(seed)

    def noise(size: tuple[int, ...]) -> Any:
        drawn = generator.choice(best.innovations, size=(*size[:-1], size[-1] + WARM_UP))
        return worst.made_of(drawn)[..., WARM_UP:]

    def strongest(rows: Any, axis: int) -> Any:
        return search.ratios(np.atleast_2d(rows))

    p = 1.0
    for resamples in (FIRST_RESAMPLES, RESAMPLES):
        found = stats.monte_carlo_test(blocks, noise, strongest, vectorized=True, n_resamples=resamples, alternative="greater")
        p = float(np.asarray(found.pvalue).reshape(-1)[0])
        if p > HOPELESS:
            break
    position, width = _locate(y, int(search.places[best.shape]) * block, block)
    shape = search.shapes[best.shape]
    left = blocks - best.coefficient * shape
    left = left - np.polynomial.Polynomial.fit(np.arange(n), left, 1)(np.arange(n))
    return Change(
        position=position, width=None if width >= ENDLESS else width, size=best.coefficient * float(shape[-1]), noise=float(left.std()), p=p
    )


def leave_level(values: Sequence[float]) -> Change:
    """Where does a series leave the level at which it began? A level and one step or bend, without a trend of its own (least squares).

    There is no test in it: p is NaN.
    """
    np, _ = load()
    y = np.asarray(values, dtype=float)
    n = len(y)
    places = np.arange(1, n - EDGE + 1)
    shapes = np.concatenate([np.clip(np.arange(n)[None, :] - places[:, None] + 1.0, 0.0, width) for width in (1.0, float(n))])
    flat = shapes - shapes.mean(axis=1, keepdims=True)
    sizes = (flat * (y - y.mean())).sum(axis=1) / (flat * flat).sum(axis=1)
    left = ((y - y.mean()) - sizes[:, None] * flat).std(axis=1)
    best = int(left.argmin())
    is_step = best < len(places)
    return Change(
        position=int(places[best % len(places)]),
        width=1 if is_step else None,
        size=float(sizes[best] * shapes[best, -1]),
        noise=float(left[best]),
        p=float("nan"),
    )


def find_variance_change(values: Sequence[float]) -> tuple[int, float]:
    """The place from which values spread more or less (the most likely one for Laplace's noise of two widths), and the p of no such change.

    Its likelihood goes by absolute values: of squares, one spike shortly before a change is taken for its beginning.
    It is that of Levene's test on both sides (the form of Brown and Forsythe), times the number of places that were tried.
    """
    np, stats = load()
    y = np.asarray(values, dtype=float)
    y = y - np.median(y)
    n = len(y)
    sizes = np.cumsum(np.abs(y))
    places = np.arange(EDGE, n - EDGE)
    before = sizes[places - 1] / places
    after = (sizes[-1] - sizes[places - 1]) / (n - places)
    tiny = max(sizes[-1] / n * 1e-6, 1e-300)
    cost = places * np.log(np.maximum(before, tiny)) + (n - places) * np.log(np.maximum(after, tiny))
    place = int(places[cost.argmin()])
    p = float(stats.levene(y[:place], y[place:], center="median").pvalue)
    return place, min(1.0, p * len(places)) if p == p else 1.0


class _Best(msgspec.Struct, frozen=True):
    """The fit that leaves least."""

    shape: int
    coefficient: float
    innovations: Any
    """What it leaves, independent."""


class _Search:
    """All shapes of one length, made independent by each model of the noise."""

    def __init__(self, n: int, places: Any, widths: Any) -> None:
        np, _ = load()
        self._n, self.places, self.widths = n, places, widths
        self.shapes = np.clip(np.arange(n)[None, :] - places[:, None] + 1.0, 0.0, widths[:, None])
        self._by_noise = []
        for noise in NOISES:
            basis = nuisance(noise, n)
            flat = without(basis, noise.innovations(self.shapes))
            sizes = np.sqrt(np.maximum((flat * flat).sum(axis=1), 1e-9))
            unit = flat / sizes[:, None]
            self._by_noise.append((noise, basis, unit, unit.astype(np.float32), sizes))

    def left(self, values: Any) -> Any:
        """For each noise: the innovations of the series without any shape, their sum of squares, and what each shape explains of it."""
        for noise, basis, unit, _, sizes in self._by_noise:
            new = without(basis, noise.innovations(values))
            yield new, (new * new).sum(axis=-1), new @ unit.T, unit, sizes

    def ratios(self, rows: Any) -> Any:
        """Logarithm of the likelihood ratio, twice, for each row: of hundreds of series, so in half the digits, which is twice as fast."""
        np, _ = load()
        plain = shaped = np.inf
        for noise, basis, _, unit, _ in self._by_noise:
            new = without(basis, noise.innovations(rows))
            total = (new * new).sum(axis=-1)
            length = np.sqrt(np.maximum(total, 1e-300))[..., None]
            along = (new / length).astype(np.float32) @ unit.T  # a correlation, so that no size of the values is too large for it
            most = np.maximum(along.max(axis=-1), -along.min(axis=-1)).astype(float)  # its square is the largest, without a table of squares
            plain = np.minimum(plain, total)
            shaped = np.minimum(shaped, total * np.maximum(1.0 - most * most, EXACT))
        return self._n * np.log(plain / np.maximum(shaped, 1e-300))

    def best(self, values: Any) -> _Best | None:
        """None when nothing is left to be explained."""
        least, found = float("inf"), None
        for new, total, along, flat, sizes in self.left(values):
            k = int((along * along).argmax())
            remains = float(total - along[k] ** 2)
            if total > 1e-24 * float(values @ values) and remains < least:
                innovations = new - along[k] * flat[k]
                least, found = remains, _Best(k, float(along[k] / sizes[k]), innovations - innovations.mean())
        return found

    def remains(self, values: Any) -> Any:
        """The sum of squares that each shape leaves, with the simplest noise that suits the best of them (Akaike's criterion)."""
        np, _ = load()
        by_noise = [(total - along * along, noise) for noise, (_, total, along, _, _) in zip(NOISES, self.left(values), strict=True)]
        return min(by_noise, key=lambda one: self._n * float(np.log(max(one[0].min(), 1e-300))) + 2 * one[1].parameters)[0]


@functools.lru_cache(maxsize=1)
def _search(n: int) -> _Search:
    """Most metrics of a run have one length; what is searched for in it takes as long to make as the search."""
    np, _ = load()
    return _Search(n, *_grid(np.arange(EDGE, n - EDGE + 1), WIDTHS))


def forget_search() -> None:
    """Free the hundred megabytes that the last one holds."""
    _search.cache_clear()


def _grid(places: Any, widths: Sequence[int]) -> tuple[Any, Any]:
    np, _ = load()
    return np.tile(places, len(widths)), np.repeat(np.asarray(widths), len(places))


def _locate(y: Any, about: int, block: int) -> tuple[int, int]:
    """Place and width in the full series, near where the test found it."""
    np, _ = load()
    reach = max(FINE_PLACES, FINE_BLOCKS * block if block > 1 else 0)
    span = FINE_SPAN + (2 * FINE_BLOCKS * block if block > 1 else 0)
    low, high = max(0, about - span), min(len(y), about + span)
    near = np.arange(max(low + EDGE, about - reach), min(high - EDGE, about + reach) + 1)
    places, widths = _grid(near - low, FINE_WIDTHS)
    left = _Search(high - low, places, widths).remains(y[low:high])
    simple = left.min() * SIMPLER
    for width in (1, ENDLESS, *FINE_WIDTHS):
        of_width = np.where(widths == width, left, np.inf)
        if of_width.min() <= simple:
            break
    return int(places[int(of_width.argmin())]) + low, int(width)
