"""Log-probabilities of the same tokens from two sides, and how far they lie apart."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from statistics import StatisticsError, correlation, fmean, pstdev

import msgspec

from ray_rl_debug.rollouts.alignment import common
from ray_rl_debug.rollouts.answers import LOWEST, Pair, Trial

NORMAL = 0.005
"""verl's FAQ: ``training/rollout_probs_diff_mean`` is normally below this."""
ALARM = 0.01
"""verl's FAQ: above this the engine's precision is in doubt."""
QUANTILES = (0.5, 0.9, 0.99, 1.0)


class Place(msgspec.Struct, frozen=True):
    """One token that both sides gave a log-probability."""

    pair: int
    at: int
    """Place in the answer, from 0."""
    token: int | None
    engine: float
    reference: float
    scaled: float | None = None
    rounded: float | None = None

    @property
    def gap(self) -> float:
        """Engine less reference, in nats."""
        return self.engine - self.reference

    @property
    def probability_gap(self) -> float:
        return abs(math.exp(min(self.engine, 0.0)) - math.exp(min(self.reference, 0.0)))


class Distance(msgspec.Struct, frozen=True, kw_only=True):
    """How far two rows of log-probabilities lie apart."""

    tokens: int
    probs_diff_mean: float
    """verl's rollout_probs_diff_mean: mean of the absolute difference of probabilities."""
    probs_diff_max: float
    probs_diff_std: float
    logprob_diff_mean: float
    """Mean of the absolute difference, in nats."""
    logprob_diff_quantiles: tuple[tuple[float, float], ...]
    kl: float
    """Estimate of KL(engine | reference) in nats per token: mean of exp(-d) - 1 + d with d = engine - reference (Schulman's k3)."""
    pearson: float | None
    """Correlation of the probabilities, as verl's rollout_actor_probs_pearson_corr; None for constant rows."""


def places(trial: Trial) -> tuple[Place, ...]:
    """All tokens with a finite log-probability on both sides, in order."""
    return places_of(trial.pairs)


def places_of(pairs: Iterable[Pair]) -> tuple[Place, ...]:
    """The same of some pairs."""
    return tuple(place for number, pair in enumerate(pairs) for place in _of_pair(number, pair))


def _of_pair(number: int, pair: Pair) -> Iterator[Place]:
    engine, score, other = pair.engine, pair.score, pair.reference
    if engine.logprobs is None:
        return
    ids = engine.ids
    if score is not None:
        limit = min(len(engine.logprobs), len(score.logprobs))
        theirs: Sequence[float | None] = score.logprobs
    elif other is not None and other.logprobs is not None and _same_prompt(pair):
        # the same tokens before it: both sides speak of the same probability
        ours_row, their_row = (ids, other.ids) if ids is not None and other.ids is not None else (engine.pieces, other.pieces)
        if ours_row is None or their_row is None:
            return
        limit = min(common(ours_row, their_row), len(engine.logprobs), len(other.logprobs))
        theirs = other.logprobs
    else:
        return
    for at in range(limit):
        e, r = engine.logprobs[at], theirs[at]
        if _is_usable(e) and _is_usable(r):
            assert e is not None
            assert r is not None
            scaled = score.scaled[at] if score and score.scaled else None
            rounded = score.rounded[at] if score and score.rounded else None
            yield Place(number, at, ids[at] if ids is not None and at < len(ids) else None, e, r, scaled, rounded)


def _same_prompt(pair: Pair) -> bool:
    ours, theirs = pair.engine.prompt_ids, pair.prompt_ids
    return ours is None or theirs is None or ours == theirs


def _is_usable(value: float | None) -> bool:
    return value is not None and math.isfinite(value) and value > LOWEST


def distance(ours: Sequence[float], theirs: Sequence[float]) -> Distance | None:
    """How far two rows of finite log-probabilities lie apart; None for empty rows."""
    if not ours:
        return None
    gaps = [a - b for a, b in zip(ours, theirs, strict=True)]
    sizes = sorted(map(abs, gaps))
    p, q = ([math.exp(min(v, 0.0)) for v in row] for row in (ours, theirs))
    apart = [abs(a - b) for a, b in zip(p, q, strict=True)]
    try:
        pearson: float | None = correlation(p, q)
    except StatisticsError:
        pearson = None
    return Distance(
        tokens=len(gaps),
        probs_diff_mean=fmean(apart),
        probs_diff_max=max(apart),
        probs_diff_std=pstdev(apart),
        logprob_diff_mean=fmean(sizes),
        logprob_diff_quantiles=tuple((q, quantile(sizes, q)) for q in QUANTILES),
        kl=fmean(math.exp(min(-g, 50.0)) - 1 + g for g in gaps),
        pearson=pearson,
    )


def quantile(ordered: Sequence[float], share: float) -> float:
    """Of an ordered, not empty row, by linear interpolation."""
    at = share * (len(ordered) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)
