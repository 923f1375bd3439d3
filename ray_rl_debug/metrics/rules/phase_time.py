"""RRD720 a phase becomes slower

Story
    One phase of the step (rollout, log-probabilities, update, weight sync, ...) takes longer and longer, or much longer since a certain step.

Evidence
    The phase, the step at which it begins, the factor, its part of the step, and the p of the test.

Remedy
    Rollout: longer answers, an engine with a full cache or waiting requests (rayrl-debug metrics --follow --engine URL), a slow tool or reward.
    Weight sync: the network. Update: longer sequences, memory that fragments. Look at the run while it is slow: rayrl-debug timeline.

Not this when
    The phase is a small part of the step: it is not judged. Phases that come at some steps only are judged at those.
    Where sequences grow meanwhile, and the square of their growth is as large as the rise, it is told as *possible*; where both go on step by step,
    it is good.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from sys import modules

from ray_rl_debug.metrics.bench import Bench
from ray_rl_debug.metrics.judging import Drift, short
from ray_rl_debug.metrics.lengths import beside_length
from ray_rl_debug.metrics.model import Judgement, Series
from ray_rl_debug.metrics.quantities import Quantity
from ray_rl_debug.metrics.shapes import Said, judge_drift, rises_by

ID = "RRD720"
NAME = "a phase becomes slower"
RULE = modules[__name__]
ROLLOUT = ("gen", "rollout", "generate", "agent_loop")
OF_ROLLOUT = (
    "look at the engine beside the steps: rayrl-debug metrics --follow --engine URL",
    "look at slow tools and rewards: rayrl-debug timeline -o run.pftrace",
)
OF_OTHERS = ("look at the run while it is slow: rayrl-debug timeline -o run.pftrace",)


def judge(bench: Bench) -> Iterator[Judgement]:
    """Each phase that matters."""
    factor, share = bench.threshold("phase_time_rise"), bench.threshold("phase_share")
    whole = bench.one(Quantity.STEP_TIME)
    step_s = _typical(whole) if whole is not None else None

    def part_of_step(series: Series) -> float | None:
        return _typical(series) / step_s if step_s else None

    def say(series: Series, found: Drift) -> Said | str:
        part, lengths = part_of_step(series), beside_length(bench, found)
        risen = f"rises by a factor of {short(found.factor)}"
        if lengths.is_course:
            return f"{risen}, and {lengths.words}"
        told = (f"{part:.0%} of the step at the last steps" if part is not None else None, lengths.words)
        return Said(
            remedy=OF_ROLLOUT if series.name.split("/")[-1].startswith(ROLLOUT) else OF_OTHERS,
            before=f"{risen}: ",
            evidence=tuple(text for text in told if text is not None),
            certainty=lengths.certainty,
        )

    def matters(series: Series) -> bool:
        part = part_of_step(series)
        return part is None or part >= share

    fine = f"does not rise by a factor of {factor:g}"
    yield from judge_drift(RULE, bench, Quantity.PHASE_TIME, say, up=True, is_large=rises_by(factor), fine=fine, is_judged=matters)


def _typical(series: Series) -> float:
    return statistics.median(series.finite()[1][-20:])
