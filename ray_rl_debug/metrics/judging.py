"""What rules have in common: a metric beyond its limit, a metric that drifts away from where it was, the words for both."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType

import msgspec

from ray_rl_debug.metrics.bench import Bench
from ray_rl_debug.metrics.model import Judgement, Series, Status
from ray_rl_debug.metrics.statistics.changes import Change, find_change, leave_level
from ray_rl_debug.metrics.statistics.excursions import Excursion, last_excursion
from ray_rl_debug.metrics.statistics.noise import without_spikes
from ray_rl_debug.metrics.statistics.numeric import load
from ray_rl_debug.metrics.statistics.trends import trend
from ray_rl_debug.model.report import Certainty

NEAR = 20
"""Values before a change that say what was usual."""


def bad(rule: ModuleType, metric: str, certainty: Certainty, summary: str, first_step: int | None, **more: object) -> Judgement:
    """Something is wrong."""
    found = Judgement(id=rule.ID, name=rule.NAME, metric=metric, status=Status.BAD, certainty=certainty, summary=summary, first_step=first_step)
    return msgspec.structs.replace(found, **more)


def good(rule: ModuleType, metric: str, summary: str, *, low: float | None = None, high: float | None = None) -> Judgement:
    """Enough was seen, and nothing is wrong."""
    return Judgement(id=rule.ID, name=rule.NAME, metric=metric, status=Status.GOOD, summary=summary, low=low, high=high)


def unknown(rule: ModuleType, metric: str, summary: str) -> Judgement:
    """It cannot be said."""
    return Judgement(id=rule.ID, name=rule.NAME, metric=metric, status=Status.UNKNOWN, summary=summary)


def too_short(rule: ModuleType, series: Series, wanted: int) -> Judgement | None:
    """A judgement for a metric with too few values; None when there are enough."""
    seen = len(series.finite()[0])
    return unknown(rule, series.name, f"{seen} of the {wanted} values that it takes to judge") if seen < wanted else None


class Beyond(msgspec.Struct, frozen=True):
    """A metric beyond a limit."""

    excursion: Excursion
    steps: tuple[int, ...]

    @property
    def first_step(self) -> int:
        return self.steps[self.excursion.first]

    def text(self, limit: str) -> str:
        """``0.43 since step 120, 0.81 at worst; wanted: at most 0.1``."""
        e = self.excursion
        when = f"from step {self.first_step} to {self.steps[e.last]}, inside again now" if e.is_over else f"since step {self.first_step}"
        return f"{short(e.typical)} {when}, {short(e.worst)} at worst; wanted: {limit}"

    @property
    def certainty(self) -> Certainty:
        """What is over is worth a word, no more."""
        return Certainty.POSSIBLE if self.excursion.is_over else Certainty.LIKELY


def beyond(bench: Bench, series: Series, how_far: Callable[[float], float]) -> Beyond | None:
    """The last stretch in which the metric was beyond its limit for several steps, and more of them than chance explains."""
    steps, values = series.finite()
    found = last_excursion(values, how_far, bench.count("window"))
    return Beyond(found, steps) if found is not None and found.p <= bench.threshold("alpha") else None


class Drift(msgspec.Struct, frozen=True, kw_only=True):
    """A metric that has left where it was."""

    first_step: int
    before: float
    now: float
    p: float
    from_start: bool
    """No change of course: it has gone this way since the beginning."""
    test: str
    is_step: bool = False
    """It came at once,"""
    is_gradual: bool = False
    """or goes on and on, without a step."""
    may_be_noise: bool = False
    """All values now are beyond all values then, but noise that wanders for long could do that by itself."""

    is_young: bool = False
    """So few values have come since that they may be a burst of slow steps, or of bad luck."""

    @property
    def is_doubtful(self) -> bool:
        return self.may_be_noise or self.is_young

    @property
    def factor(self) -> float:
        return self.now / self.before if self.before else math.inf

    def text(self) -> str:
        begun = f"since the start (step {self.first_step})" if self.from_start else f"since step {self.first_step}"
        return f"{short(self.before)} → {short(self.now)} {begun}"

    def evidence(self) -> str:
        doubt = ": noise that wanders as slowly could make it by itself" if self.may_be_noise else ""
        doubt = "; it has only just begun" if self.is_young else doubt
        return f"{self.test}, p = {self.p:.2g}{doubt}"


def drift(bench: Bench, series: Series, *, up: bool, is_large: Callable[[float, float], bool], logarithm: bool = True) -> Drift | None:
    """Does the metric rise (fall) away from where it was, far enough and more than noise explains?

    Args:
        is_large: of the values before and now: is that worth a word?
        logarithm: compare factors, not differences; used where all values are positive.

    A change of course is looked for first, because it names a step; an earlier one in the other direction (a warm-up) is cut off. Where a long rise
    and fall hide each other, it is looked for again from shortly before the best values on. A metric without a change that has gone this way all
    along is told by its trend.
    """
    steps, values = series.finite()
    now = statistics.median(values[-max(EDGE_NOW, len(values) // 20) :])
    if not is_large(min(values) if up else max(values), now):
        return None  # nothing to explain: spares the tests
    course = _Course(steps, values, [math.log(v) for v in values] if logarithm and min(values) > 0 else list(values), now, up, is_large)
    alpha, least = bench.threshold("alpha"), bench.count("min_trend")
    best = _best(values, up)
    for begin in (0, best - 2 * NEAR):
        # two places are looked from, so each has half of the errors that are allowed
        found = course.change(begin, alpha / 2, least, bench.count("min_points")) if begin >= 0 else None
        if found is not None:
            return found
    return course.all_along(alpha, least) or course.apart(0, least) or (course.apart(best - NEAR, least) if best > NEAR else None)


def seen_apart(series: Series, *, up: bool, is_large: Callable[[float, float], bool]) -> str | None:
    """The words for a metric that looks as if it had drifted, where no test tells that from noise; None where it does not even look so."""
    steps, values = series.finite()
    best, now = _best(values, up), statistics.median(values[-max(EDGE_NOW, len(values) // 20) :])
    before = statistics.median(values[best : best + SMOOTH])
    if not is_large(before, now):
        return None
    around = steps[min(best + SMOOTH // 2, len(steps) - 1)]
    return f"{short(before)} around step {around}, {short(now)} now: noise that wanders as slowly could make this by itself"


EDGE_NOW = 5
"""Last values whose median is where the metric is now."""
SMOOTH = 9
NOISES = 2.5
"""A change of fewer standard deviations of the noise around it is told by nobody: noise that wanders slowly makes such by itself."""


def _best(values: Sequence[float], up: bool) -> int:
    """Where the values were the lowest (highest), by the median of neighbours."""
    medians = [statistics.median(values[i : i + SMOOTH]) for i in range(max(1, len(values) - SMOOTH + 1))]
    return medians.index(min(medians) if up else max(medians))


def _usual(values: Sequence[float], place: int) -> float:
    return statistics.median(values[max(0, place - NEAR) : max(place, EDGE_NOW)])


class _Course:
    """A metric, on its way from somewhere to now."""

    def __init__(
        self,
        steps: Sequence[int],
        values: Sequence[float],
        y: Sequence[float],
        now: float,
        up: bool,
        is_large: Callable[[float, float], bool],
    ) -> None:
        self._steps, self._values, self._y, self._now, self._up, self._is_large = steps, values, y, now, up, is_large
        self._begin = 0
        """What comes before is a change in the other direction."""
        self._unproven: list[tuple[int, Change]] = []
        """Changes that no test is sure of, with their places: where a drift is told for another reason, the best guess of where it began."""

    def change(self, begin: int, alpha: float, least: int, least_since: int) -> Drift | None:
        """The first change from `begin` on that leads to now; one with fewer values since than `least_since` is young."""
        while len(self._y) - begin >= least:
            found = find_change(self._y[begin:])
            if found is None:
                return None
            place = begin + found.position
            if found.p > alpha:
                self._unproven.append((place, found))
                return None
            before = statistics.median(self._values[max(begin, place - NEAR) : place])
            is_clear = abs(found.size) > NOISES * found.noise
            if (found.size > 0) == self._up and is_clear and self._is_large(before, self._now):
                shape = {None: "a bend", 1: "a step"}.get(found.width, f"a slope over {found.width} values")
                return Drift(
                    first_step=self._steps[place],
                    before=before,
                    now=self._now,
                    p=found.p,
                    from_start=False,
                    is_step=found.width == 1,
                    is_gradual=found.width is None,
                    is_young=len(self._steps) - place < least_since,
                    test=f"{shape} on a straight trend, Monte Carlo test against noise that remembers (ARMA)",
                )
            begin = self._begin = place
        return None

    def all_along(self, alpha: float, least: int) -> Drift | None:
        """A trend without a change of course."""
        steps, y = self._steps[self._begin :], self._y[self._begin :]
        before = statistics.median(self._values[self._begin :][: max(EDGE_NOW, len(y) // 20)])
        if len(y) < least or not self._is_large(before, self._now):
            return None
        found = trend(steps, without_spikes(y))
        if found.p > alpha or (found.gain > 0) != self._up:
            return None
        test = "Mann-Kendall trend test, at the effective size of noise that remembers"
        return Drift(first_step=steps[0], before=before, now=self._now, p=found.p, from_start=True, is_gradual=True, test=test)

    def apart(self, begin: int, least: int) -> Drift | None:
        """A fact where no test is sure: all of the last values are beyond all of the first from `begin` on, and by far more than they spread around
        their course."""
        values = self._values[begin:]
        y = without_spikes(self._y[begin:])
        part = len(y) // PART
        if len(y) < least or part < EDGE_NOW:
            return None
        # a rise by so much a step is a bend of the values, one by so many percent a bend of their logarithms
        leaves = max((leave_level(y), leave_level(without_spikes(values))), key=lambda one: abs(one.size) / (one.noise or 1e-12))
        place = leaves.position
        early = min(part, place) if begin else part  # the best values may come shortly before a fall
        first, last = y[:early], y[-part:]
        if early < EDGE_NOW or not (min(last) > max(first) if self._up else max(last) < min(first)):
            return None
        if not self._is_large(statistics.median(values[:early]), self._now):
            return None
        if (leaves.size > 0) != self._up or abs(leaves.size) <= FAR_NOISES * leaves.noise:
            return None
        places = ((at, width, _usual(values, at)) for at, width in (*self._begun(begin, leaves), (place, leaves.width)))
        begun = next((one for one in places if self._is_large(one[2], self._now)), None)
        if begun is None:
            return None
        place, width, before = begun
        return Drift(
            first_step=self._steps[begin + place],
            before=before,
            now=self._now,
            p=trend(self._steps[begin:], y).p,
            from_start=begin == 0 and place < EDGE_NOW,
            is_gradual=width is None,
            test=f"the last {part} values lie beyond the first {early}; Mann-Kendall trend test, at the effective size of noise that remembers",
            may_be_noise=True,
        )

    def _begun(self, begin: int, leaves: Change) -> Iterator[tuple[int, int]]:
        """Places and widths of unproven changes that explain most of a drift, the last search first: their shapes are finer than a step or a bend."""
        for place, one in reversed(self._unproven):
            explains = (one.size > 0) == self._up and abs(one.size) > max(PART_OF_DRIFT * abs(leaves.size), NOISES * one.noise)
            if place > begin and explains and one.width is not None:
                yield place - begin, one.width


def drift_of_few(bench: Bench, series: Series, *, up: bool, is_large: Callable[[float, float], bool]) -> Drift | None:
    """The same for a metric with few values that lie far apart, such as a test every ten steps: does it rise (fall) all along?

    Mann-Kendall's test with its exact distribution (`scipy.stats.kendalltau`). It takes the noise of the values for independent, which tests at a
    distance mostly are; so it says *possible* only. There is no telling at which of so few values a change began.
    """
    steps, values = series.finite()
    before, now = statistics.median(values[:FEW_ENDS]), statistics.median(values[-FEW_ENDS:])
    if len(values) < MIN_FEW or not is_large(before, now):
        return None
    _, stats = load()
    p = float(stats.kendalltau(range(len(values)), values, alternative="greater" if up else "less").pvalue)
    if not p <= bench.threshold("alpha"):
        return None
    test = f"Mann-Kendall trend test with its exact distribution, on {len(values)} values"
    return Drift(first_step=steps[0], before=before, now=now, p=p, from_start=True, test=test, may_be_noise=True)


MIN_FEW = 8
"""Values below which not even a drift without an exception would be rare enough."""
FEW_ENDS = 3
PART = 5
"""The last and the first of so many parts of a run are compared."""
FAR_NOISES = 8.0
PART_OF_DRIFT = 0.5


def short(value: float) -> str:
    """A number for people."""
    if value == 0 or 0.001 <= abs(value) < 10_000:
        return f"{value:.4g}"
    return f"{value:.2e}"
