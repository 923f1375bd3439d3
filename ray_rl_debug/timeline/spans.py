"""Lengths and shares of spans of time."""

from __future__ import annotations

import math
from collections.abc import Sequence


def union(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Overlapping spans joined, so that nothing counts twice."""
    joined: list[tuple[int, int]] = []
    for a, b in sorted(spans):
        if joined and a <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], b))
        else:
            joined.append((a, b))
    return joined


def percentile(values: Sequence[float], percent: float) -> float:
    """Nearest rank: always one of the values."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]
