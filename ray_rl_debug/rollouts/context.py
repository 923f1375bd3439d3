"""Does a difference come from a token itself, or from the tokens before it?

After one token alone there is nothing to attend to but that token: positions, rotary scaling, windows, masks, query and key weights change nothing
there. All other weights do. So two sides that agree after one token and part after long texts differ in attention, not in the other weights. And the
first token of an answer comes from the prompt in one pass, the later ones through the key-value cache: where only those differ, it is that cache.

All differences are told in multiples of what rounding makes at the same places, so that sure tokens, which differ little anyway, mislead nobody;
and by their medians, so that a few tokens that are far off do not speak for all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import median

import msgspec

from ray_rl_debug.rollouts.answers import Pair
from ray_rl_debug.rollouts.differences import Place, places_of

MIN_PLACES = 8


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """Median differences as multiples of rounding; *None* is not measured."""

    alone: float | None = None
    """Of tokens after one single token."""
    first: float | None = None
    """Of first tokens of answers,"""
    later: float | None = None
    """and of those behind them."""
    p_first: float | None = None
    """Sign test: if both differed alike, so rarely would as many first tokens differ less than half of those behind them."""


def measure(found: Sequence[Place], alone: Iterable[Pair]) -> Context:
    """Of the tokens of the answers, and of those after one token alone."""
    firsts = [p for p in found if p.at == 0 and p.rounded is not None]
    first, later = _times(firsts), _times([p for p in found if p.at > 0])
    p_first = None
    if first is not None and later is not None:
        noise = _noise(firsts)
        p_first = _chance_of_as_many(sum(abs(p.gap) < later * noise for p in firsts), len(firsts))
    return Context(alone=_times(places_of(alone)), first=first, later=later, p_first=p_first)


def _chance_of_as_many(heads: int, tosses: int) -> float:
    return sum(math.comb(tosses, k) for k in range(heads, tosses + 1)) / 2.0**tosses


def _noise(known: Sequence[Place]) -> float:
    return median(abs(p.rounded - p.reference) for p in known if p.rounded is not None)


def _times(found: Sequence[Place]) -> float | None:
    known = [(abs(p.gap), abs(p.rounded - p.reference)) for p in found if p.rounded is not None]
    noise = median(n for _, n in known) if known else 0.0
    return median(g for g, _ in known) / noise if len(known) >= MIN_PLACES and noise else None
