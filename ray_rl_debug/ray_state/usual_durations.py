"""How long things usually last: the longest duration seen, without those that stand apart."""

from __future__ import annotations

from collections.abc import Sequence

APART = 5.0
"""A duration that is so many times the next shorter one stands apart from it, with all that are longer:"""
APART_FLOOR_S = 5.0
"""calls that met a stop, a pause or a stall, and the first one, which compiles. Shorter ones vary by more than any factor."""
ENOUGH = 3
"""Durations below the gap that there must be, and so many times as many as above it: two kinds of calls that come in turns are both usual."""


def usual_longest(durations: Sequence[float]) -> float:
    """The longest of `durations` (seconds) that does not stand apart; 0 for none."""
    ordered = sorted(durations)
    for i in range(ENOUGH, len(ordered)):
        apart = len(ordered) - i
        if i >= ENOUGH * apart and ordered[i] > APART_FLOOR_S and ordered[i] > APART * ordered[i - 1]:
            return ordered[i - 1]
    return ordered[-1] if ordered else 0.0
