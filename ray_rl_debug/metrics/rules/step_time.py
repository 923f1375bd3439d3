"""RRD719 steps become slower

Story
    A step takes longer and longer, or much longer since a certain step.

Evidence
    The step at which it begins, the factor, the p of the test; whether sequences grow as well, which explains it.

Remedy
    See which phase became slower (RRD720). Longer sequences: see RRD705 and RRD715. Else look at the run while it is slow: rayrl-debug timeline.

Not this when
    Single steps are slow (validation, checkpoints): they are left out. Where sequences grow meanwhile, and the square of their growth is as large as
    the rise (attention takes time with the square of the length), it is told as *possible*; where both go on step by step, it is the course of a run
    whose answers become longer, and good.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from sys import modules

from ray_rl_debug.metrics.bench import Bench
from ray_rl_debug.metrics.judging import Drift, short
from ray_rl_debug.metrics.lengths import beside_length
from ray_rl_debug.metrics.model import Judgement, Series
from ray_rl_debug.metrics.quantities import VALIDATION_S, Quantity
from ray_rl_debug.metrics.shapes import Said, judge_drift, rises_by

ID = "RRD719"
NAME = "steps become slower"
RULE = modules[__name__]
REMEDY = (
    "see which phase became slower: RRD720",
    "look at the run while it is slow: rayrl-debug timeline -o run.pftrace",
)


def judge(bench: Bench) -> Iterator[Judgement]:
    """The time per step without validation and checkpoints."""
    factor = bench.threshold("step_time_rise")

    def say(_: Series, found: Drift) -> Said | str:
        lengths = beside_length(bench, found)
        risen = f"rises by a factor of {short(found.factor)}"
        if lengths.is_course:
            return f"{risen}, and {lengths.words}"
        after = f"; {lengths.words}" if lengths.words is not None else ""
        return Said(remedy=REMEDY, before=f"{risen}: ", after=after, certainty=lengths.certainty)

    fine = f"does not rise by a factor of {factor:g}"
    prepare = partial(_without_validation, bench)
    yield from judge_drift(RULE, bench, Quantity.STEP_TIME, say, up=True, is_large=rises_by(factor), fine=fine, prepare=prepare)


def _without_validation(bench: Bench, whole: Series) -> Series:
    """The metric less the times of validation and checkpoints at the same steps."""
    less: dict[int, float] = {}
    for name in VALIDATION_S:
        if name in bench.run.series:
            for step, value in zip(*bench.run.series[name].finite(), strict=True):
                less[step] = less.get(step, 0.0) + value
    steps, values = whole.finite()
    return Series(name=whole.name, steps=steps, values=tuple(max(v - less.get(s, 0.0), v * 0.01) for s, v in zip(steps, values, strict=True)))
