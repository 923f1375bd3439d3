"""Two runs side by side: which metrics part, and from which step on.

The difference of a metric at equal steps is tested like a metric of its own: a change of course (`statistics.changes`), else a distance that was
there from the start (a t-test of its mean with the effective size of an autocorrelated series). With a hundred metrics a few of a hundred tests
would accuse by chance, so p is compared with alpha divided by the number of metrics wherever the test can give such a p; the distance must also
be larger than the noise.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

from ray_rl_debug.metrics.model import Comparison, Parting, Run, Series
from ray_rl_debug.metrics.quantities import Quantity, find
from ray_rl_debug.metrics.statistics.changes import RESAMPLES, find_change, forget_search
from ray_rl_debug.metrics.statistics.noise import effective_size, most_persistent, without_spikes
from ray_rl_debug.metrics.statistics.numeric import load

NOISES = 3.0
"""A distance of fewer standard deviations of the difference is not told."""
LATEST = 20


def compare(a: Run, b: Run, thresholds: Mapping[str, float], names: Mapping[str, str] | None = None) -> Comparison:
    """Metrics that both runs have, those that part first in front.

    Raises:
        MissingExtraError: scipy is not there.
    """
    common = [n for n in sorted(a.series) if n in b.series]
    meaning = {name: q.value for q in Quantity for name in find(q, common, names)}
    least, alpha = round(thresholds["min_trend"]), thresholds["alpha"]
    parted, short, alike = [], [], 0
    for name in common:
        pairs = _pairs(a.series[name], b.series[name])
        if len(pairs) < least:
            short.append(name)
            continue
        p, quantity = max(alpha / len(common), 1.0 / (RESAMPLES + 1)), meaning.get(name)
        apart = _from_first_difference(pairs)
        found = _part(name, pairs, p, quantity, is_whole=True)
        if found is None and least <= len(apart) < len(pairs):
            found = _part(name, apart, p, quantity, is_whole=False)
        if found is None:
            alike += 1
        else:
            parted.append(found)
    forget_search()
    steps = sorted({s for n in common for s, _, _ in _pairs(a.series[n], b.series[n])})
    return Comparison(
        a=a.label,
        b=b.label,
        parted=tuple(sorted(parted, key=lambda p: (p.quantity is None, p.first_step, p.metric))),
        alike=alike,
        too_short=tuple(short),
        only_a=tuple(n for n in sorted(a.series) if n not in b.series),
        only_b=tuple(n for n in sorted(b.series) if n not in a.series),
        equal_until=_equal_until(a, b, common),
        steps=len(steps),
        settings=_settings(a, b),
    )


def _pairs(a: Series, b: Series) -> list[tuple[int, float, float]]:
    other = dict(zip(*b.finite(), strict=True))
    return [(s, v, other[s]) for s, v in zip(*a.finite(), strict=True) if s in other]


def _from_first_difference(pairs: list[tuple[int, float, float]]) -> list[tuple[int, float, float]]:
    """The values from where two runs of one seed are no longer exactly equal: what comes before holds no noise to measure by."""
    return next((pairs[i:] for i, (_, x, y) in enumerate(pairs) if x != y), [])


def _part(name: str, pairs: Sequence[tuple[int, float, float]], alpha: float, quantity: str | None, *, is_whole: bool) -> Parting | None:
    """Where one metric parts; None where it does not. `is_whole`: the values differ from the first common step on."""
    steps = [s for s, _, _ in pairs]
    positive = all(x > 0 and y > 0 for _, x, y in pairs)
    apart = [math.log(x / y) if positive else x - y for _, x, y in pairs]
    if not any(apart):
        return None
    calm = without_spikes(apart)
    noise = 1.4826 * statistics.median(abs(v - w) for v, w in zip(calm[1:], calm, strict=False)) / 2**0.5
    now = statistics.median(apart[-LATEST:])
    change = find_change(apart)
    if change is not None and change.p <= alpha:
        before = statistics.median(apart[max(0, change.position - LATEST) : change.position])
        if abs(now - before) > NOISES * noise:
            return _told(name, pairs, change.position, change.p, quantity, from_start=False)
    if abs(now) > NOISES * noise and (p := _p_of_distance(calm)) <= alpha and steps:
        return _told(name, pairs, 0, p, quantity, from_start=is_whole)
    return None


def _told(name: str, pairs: Sequence[tuple[int, float, float]], place: int, p: float, quantity: str | None, *, from_start: bool) -> Parting:
    latest = pairs[-LATEST:]
    return Parting(
        metric=name,
        quantity=quantity,
        first_step=pairs[place][0],
        from_start=from_start,
        a_now=statistics.median(x for _, x, _ in latest),
        b_now=statistics.median(y for _, _, y in latest),
        p=p,
    )


def _p_of_distance(apart: Sequence[float]) -> float:
    """Of a mean difference of zero."""
    np, stats = load()
    values = np.asarray(apart)
    size = effective_size(len(apart), most_persistent(apart))
    deviation = float(values.std(ddof=1))
    if deviation == 0:
        return 0.0
    return float(2 * stats.t.sf(abs(float(values.mean())) / deviation * math.sqrt(size), size - 1))


def _equal_until(a: Run, b: Run, common: Sequence[str]) -> int | None:
    """The last step up to which all common metrics but times are exactly equal: runs of one seed. None where they never are."""
    named = [n for n in common if not n.startswith(("timing", "timeperf", "perf/"))]
    rows: dict[int, bool] = {}
    for name in named:
        for step, x, y in _pairs(a.series[name], b.series[name]):
            rows[step] = rows.get(step, True) and x == y
    last = None
    for step in sorted(rows):
        if not rows[step]:
            break
        last = step
    return last


def _settings(a: Run, b: Run) -> dict[str, tuple[str, str]]:
    """Settings that both tell, and tell differently."""
    return {k: (v, b.settings[k]) for k, v in sorted(a.settings.items()) if k in b.settings and b.settings[k] != v}
