"""How far an engine moved from old weights to new ones, measured on the same tokens."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from statistics import fmean

import msgspec

from ray_rl_debug.rollouts.answers import LOWEST
from ray_rl_debug.rollouts.differences import Place
from ray_rl_debug.rollouts.view import MIN_TOKENS, View

SURE = 0.08
"""Largest standard error of the share that still tells none, part and all apart (0.25 is three of them)."""


class Arrival(str, enum.Enum):
    ARRIVED = "arrived"
    PARTIAL = "partial"
    MISSING = "missing"
    UNKNOWN = "unknown"


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """The engine's way from the old to the new log-probabilities."""

    arrival: Arrival
    tokens: int
    share: float
    """0: still the old ones; 1: the new ones. Least squares of (engine - old) on (new - old)."""
    error: float
    """Standard error of the share, by leaving out one answer after the other."""
    step: float
    """Mean absolute difference of new and old, in nats."""
    from_old: float
    from_new: float
    clearest: Place
    """The token that old and new weights see most differently."""
    clearest_old: float

    @property
    def way(self) -> float:
        """The share in whole per cents, without a sign before nothing."""
        return round(self.share, 2) + 0.0


def measure(view: View) -> Move | None:
    """How far the engine moved; None without log-probabilities from before the update."""
    if view.trial.before is None:
        return None
    old = {(s.key, s.sample): s.logprobs for s in view.trial.before}
    known: list[tuple[Place, float]] = []
    for place in view.places:
        answer = view.trial.pairs[place.pair].engine
        row = old.get((answer.key, answer.sample), ())
        value = row[place.at] if place.at < len(row) else None
        if value is not None and math.isfinite(value) and value > LOWEST:
            known.append((place, value))
    if len(known) < MIN_TOKENS:
        return None
    rows = [(p.pair, p.reference - b, p.engine - b) for p, b in known]
    share, error = _share(rows)
    place, before = max(known, key=lambda k: abs(k[0].reference - k[1]))
    return Move(
        arrival=_arrival(share, error),
        tokens=len(known),
        share=share,
        error=error,
        step=fmean(abs(u) for _, u, _ in rows),
        from_old=fmean(abs(y) for _, _, y in rows),
        from_new=fmean(abs(p.gap) for p, _ in known),
        clearest=place,
        clearest_old=before,
    )


def _share(rows: Sequence[tuple[int, float, float]]) -> tuple[float, float]:
    """Slope through the origin and its standard error: the jackknife over answers (tokens of one answer are not independent)."""
    sums: dict[int, tuple[float, float]] = {}
    for pair, u, y in rows:
        uu, uy = sums.get(pair, (0.0, 0.0))
        sums[pair] = (uu + u * u, uy + u * y)
    all_uu, all_uy = (sum(s[i] for s in sums.values()) for i in (0, 1))
    if all_uu == 0:
        return 0.0, math.inf
    share = all_uy / all_uu
    if len(sums) < 2:
        rest = sum((y - share * u) ** 2 for _, u, y in rows)
        return share, math.sqrt(rest / max(len(rows) - 1, 1) / all_uu)
    left = [(all_uy - uy) / (all_uu - uu) if all_uu > uu else share for uu, uy in sums.values()]
    count = len(left)
    return share, math.sqrt((count - 1) / count * sum((value - share) ** 2 for value in left))


def _arrival(share: float, error: float) -> Arrival:
    if error > SURE:
        return Arrival.UNKNOWN
    if share < 0.25:
        return Arrival.MISSING
    return Arrival.PARTIAL if share < 0.75 else Arrival.ARRIVED
