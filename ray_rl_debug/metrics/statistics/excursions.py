"""Is a metric beyond its limit, and since when? A single value says nothing: the median of several neighbours must be beyond.

Where a metric is beyond its limit now and then, some neighbours are so by chance one day: the more likely, the longer the run. So a stretch counts
only where the values elsewhere do not explain it (a scan statistic: the binomial chance of so many, times the places at which it could have been).
"""

from __future__ import annotations

import math
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
    p: float
    """Of so many values beyond the limit among neighbours, if each is so as often as the others."""


def last_excursion(values: Sequence[float], how_far: Callable[[float], float], window: int) -> Excursion | None:
    """The last stretch in which more than half of each `window` neighbours were beyond the limit; None when there is none.

    `how_far` is the distance beyond the limit, zero or less inside it.

    Stretches that are less than a window apart are one.
    """
    n = len(values)
    window = min(window, n)
    beyond = [how_far(v) > 0 for v in values]
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
    worst = max(inside, key=how_far)
    is_over = not hit[-1]
    p = _chance(len(inside), max(last + 1 - first, window), [*beyond[:first], *beyond[last + 1 :]]) * (len(hit) if is_over else 1)
    return Excursion(first=first, last=last, worst=worst, typical=statistics.median(inside), is_over=is_over, p=min(p, 1.0))


OFTEN = 0.15
"""Part of the values that may be beyond a limit now and then; where it is more, that is no usual state to compare with."""


def _chance(count: int, size: int, others: Sequence[bool]) -> float:
    """Of `count` or more in `size`, each as likely as it is among the others."""
    share = min(OFTEN, (sum(others) + 0.5) / (len(others) + 1))
    told = math.lgamma(size + 1)
    parts = (
        told - math.lgamma(k + 1) - math.lgamma(size - k + 1) + k * math.log(share) + (size - k) * math.log1p(-share) for k in range(count, size + 1)
    )
    return math.fsum(math.exp(part) for part in parts)
