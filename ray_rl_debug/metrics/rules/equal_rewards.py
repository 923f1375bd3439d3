"""RRD722 all rewards are equal

Story
    All answers of a step get the same reward, step after step: advantages are 0, and an update with them changes nothing. Prompts that are never (or
    always) solved do that, and a reward function that gives the same to everything.

Evidence
    The largest and the smallest advantage (or reward) of each step, the standard deviation of rewards in a group, or the part of groups without any:
    since which step they say that nothing differs.

Remedy
    Run the reward function on some answers by hand: a service that fails gives everybody the same. Filter prompts that are always or never solved;
    sample at temperature 1, with more answers to each prompt.

Not this when
    Rewards differed before and are now the best of the run: the task may be solved. Then it is told as *possible*, as are equal rewards that are
    over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from sys import modules

from ray_rl_debug.metrics.bench import Bench
from ray_rl_debug.metrics.judging import bad, good, short, too_short
from ray_rl_debug.metrics.model import Judgement, Series
from ray_rl_debug.metrics.quantities import Quantity
from ray_rl_debug.model.report import Certainty

ID = "RRD722"
NAME = "all rewards are equal"
RULE = modules[__name__]
TINY = 1e-7
"""A spread below this is one of rounding."""
REMEDY = (
    "run the reward function on some answers by hand; a service that fails gives everybody the same",
    "filter prompts that are always or never solved",
    "sample at temperature 1, with more answers to each prompt",
)


def judge(bench: Bench) -> Iterator[Judgement]:
    """The spread of each step, by the nearest metric to the update that tells it."""
    found = _spread(bench)
    if found is None:
        return
    series, is_equal, told = found
    least = bench.count("min_points")
    if (early := too_short(RULE, series, least)) is not None:
        yield early
        return
    steps, values = series.finite()
    stretch = _last_run([is_equal(v) for v in values], least)
    if stretch is None:
        yield good(RULE, series.name, f"differ within steps, or are equal in fewer than {least} steps in a row")
        return
    first, last = steps[stretch[0]], steps[stretch[1]]
    is_over = stretch[1] < len(steps) - 1
    reward, is_best = _reward_then(bench, first, last)
    when = f"from step {first} to {last}, and differ again now" if is_over else f"since step {first}"
    level = f" (reward {short(reward)})" if reward is not None else ""
    solved = ": the task may be solved, or the reward asks for too little" if is_best else ": updates change nothing"
    certainty = Certainty.POSSIBLE if is_over or is_best else Certainty.LIKELY
    yield bad(RULE, series.name, certainty, f"all rewards of a step are equal {when}{level}{solved}", first, evidence=(told,), remedy=REMEDY)


def _spread(bench: Bench) -> tuple[Series, Callable[[float], bool], str] | None:
    """A metric that tells whether rewards differ, when they do not, and how to say that."""
    for high, low, told in (
        (Quantity.ADVANTAGE_MAX, Quantity.ADVANTAGE_MIN, "the largest and the smallest advantage are both {0}"),
        (Quantity.REWARD_MAX, Quantity.REWARD_MIN, "the largest and the smallest reward are the same"),
    ):
        above, below = bench.one(high), bench.one(low)
        if above is not None and below is not None:
            others = dict(zip(*below.finite(), strict=True))
            rows = [(s, v - others[s]) for s, v in zip(*above.finite(), strict=True) if s in others]
            series = Series(name=above.name, steps=tuple(s for s, _ in rows), values=tuple(v for _, v in rows))
            return series, _is_tiny, told.format("0")
    if (deviation := bench.one(Quantity.REWARD_STD)) is not None:
        return deviation, _is_tiny, f"{deviation.name} is 0"
    if (share := bench.one(Quantity.EQUAL_GROUPS)) is not None:
        return share, lambda v: v >= 1, f"{share.name} is 1"
    return None


def _is_tiny(spread: float) -> bool:
    return abs(spread) <= TINY


def _last_run(equal: Sequence[bool], least: int) -> tuple[int, int] | None:
    """First and last place of the last row of at least so many equal steps."""
    end = len(equal)
    while end > 0:
        begin = end
        while begin > 0 and equal[begin - 1]:
            begin -= 1
        if end - begin >= least:
            return begin, end - 1
        end = begin - 1 if begin == end else begin
    return None


def _reward_then(bench: Bench, first: int, last: int) -> tuple[float | None, bool]:
    """The mean reward in those steps, and whether it is better than all before."""
    series = bench.one(Quantity.REWARD)
    rows = list(zip(*series.finite(), strict=True)) if series is not None else []
    inside = [v for s, v in rows if first <= s <= last]
    before = [v for s, v in rows if s < first]
    if not inside:
        return None, False
    typical = sorted(inside)[len(inside) // 2]
    return typical, bool(before) and typical >= max(before)
