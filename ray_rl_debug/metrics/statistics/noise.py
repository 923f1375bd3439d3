"""What noise does a series hold, and what does that cost? Noise that remembers looks like a trend, and like a change.

The model is ARMA(1,1): a wander that forgets (rho), under independent noise (theta below 0), which is what the mean reward of a batch is; rho = 1 is
a random walk. AR(1) alone takes the independent part for forgetting and calls every wander below it a change. Regressors go through the same filter
as the values (generalised least squares, in the form of Cochrane and Orcutt, 1949), so that each fit is one of independent innovations.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

from ray_rl_debug.metrics.statistics.numeric import load, recursion

SPIKE = 5.0
"""Robust standard deviations from the median of its neighbours beyond which a single value is a spike (a validation, a checkpoint)."""
SPIKE_WINDOW = 7
ALLOWED = 2.71
"""Twice the logarithm of a likelihood ratio up to which a model is not contradicted: the 90 % quantile of chi-square with one degree."""


class Noise(NamedTuple):
    """``x[t] = rho x[t-1] + e[t] + theta e[t-1]``."""

    rho: float
    theta: float = 0.0

    @property
    def parameters(self) -> int:
        return (self.rho != 0) + (self.theta != 0)

    def innovations(self, rows: Any) -> Any:
        """What is new in each value but the first; linear, so that regressors take the same way."""
        return recursion((1, -self.rho), (1, self.theta), rows)[..., 1:]

    def made_of(self, innovations: Any) -> Any:
        """The noise, from rest."""
        return recursion((1, self.theta), (1, -self.rho), innovations)


MODELS = tuple(
    Noise(rho, theta)
    for rho in (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.93, 0.96, 0.98, 1.0)
    for theta in (0.0, -0.2, -0.4, -0.6, -0.7, -0.8, -0.85, -0.9)
    if theta == 0 or -theta < rho - 0.05  # nearer they cancel out, and it is independent noise
)


@functools.lru_cache(maxsize=2 * len(MODELS))
def nuisance(noise: Noise, n: int) -> Any:
    """Orthonormal rows for what is not looked at: a level, a slope, and the unknown past of the first value."""
    np, _ = load()
    rows = np.array([np.ones(n), np.arange(n) / n, np.eye(1, n)[0]])
    _, sizes, basis = np.linalg.svd(noise.innovations(rows), full_matrices=False)
    return basis[sizes > 1e-6 * sizes[0]]


def without(basis: Any, rows: Any) -> Any:
    """Rows less what the basis explains of them."""
    return rows - (rows @ basis.T) @ basis


def most_persistent(values: Sequence[float]) -> Noise:
    """Of all models that the values around their straight line do not contradict, the one that remembers longest.

    A test for a trend or a change is right for each noise only as far as it knows it; the worst that is possible keeps it right (Berger and Boos,
    1994).
    """
    sums = _left_by(values)
    least = min(sums.values(), default=0.0)
    possible = [m for m, total in sums.items() if total - least <= ALLOWED]
    return _unbiased(max(possible, key=lambda m: (m.rho, -sums[m])), len(values)) if possible else Noise(0.0)


def most_likely(values: Sequence[float]) -> Noise:
    """The simplest model that suits the values around their straight line (Akaike's criterion)."""
    sums = _left_by(values)
    return _unbiased(min(sums, key=lambda m: sums[m] + 2 * m.parameters), len(values)) if sums else Noise(0.0)


def _left_by(values: Sequence[float]) -> dict[Noise, float]:
    """Twice the negative logarithm of each model's likelihood; nothing for a series that is too short, or does not vary."""
    np, _ = load()
    x = np.asarray(values, dtype=float)
    n = len(x)
    if n < 8 or float(np.ptp(x)) == 0:
        return {}
    left = {}
    for noise in MODELS:
        new = without(nuisance(noise, n), noise.innovations(x))
        left[noise] = n * float(np.log(max(float(new @ new), 1e-300)))
    return left


def _unbiased(noise: Noise, n: int) -> Noise:
    """The estimate of rho is too low in short series by (1 + 4 rho) / n (Marriott and Pope, 1954); that is added, up to the random walk."""
    return noise._replace(rho=min(noise.rho + (1 + 4 * noise.rho) / n, 1.0)) if noise.rho else noise


def effective_size(n: int, noise: Noise) -> float:
    """How many independent values `n` values are worth for their mean: n times their variance, by that of their long run.

    For AR(1) it is n (1 - rho) / (1 + rho) (Bayley and Hammersley, 1946). Never less than 3.
    """
    rho, theta = noise
    return max(3.0, n * (1 + 2 * rho * theta + theta * theta) * (1 - rho) / ((1 + rho) * (1 + theta) ** 2))


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
