"""Is a metric beyond its limit, and since when? A single value says nothing: the median of several neighbours must be beyond."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

import msgspec


class Excursion(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of steps beyond a limit."""

    first: int
    """Position of its first value,"""
    last: int
    """and of its last."""
    worst: float
    typical: float
    """Median inside it."""
    is_over: bool
    """Is the metric back inside?"""


def last_excursion(values: Sequence[float], is_beyond: Callable[[float], bool], window: int) -> Excursion | None:
    """The last stretch in which more than half of each `window` neighbours were beyond the limit; None when there is none.

    Stretches that are less than a window apart are one.
    """
    n = len(values)
    window = min(window, n)
    beyond = [is_beyond(v) for v in values]
    hit = [sum(beyond[i : i + window]) * 2 > window for i in range(n - window + 1)]
    if not any(hit):
        return None
    end = max(i for i, h in enumerate(hit) if h)
    start = end
    for i in range(end, -1, -1):
        if hit[i]:
            start = i
        elif start - i > window:
            break
    first = next(i for i in range(start, n) if beyond[i])
    last = max(i for i in range(first, min(n, end + window)) if beyond[i])
    inside = [v for v, b in zip(values[first : last + 1], beyond[first : last + 1], strict=True) if b]
    worst = max(inside, key=lambda v: abs(v - statistics.median(values)))
    return Excursion(first=first, last=last, worst=worst, typical=statistics.median(inside), is_over=not hit[-1])
