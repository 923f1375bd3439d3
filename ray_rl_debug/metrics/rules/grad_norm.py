"""RRD711 gradient norm rises

Story
    The gradient norm leaves where it was and rises: training becomes unstable, or the engine and the trainer disagree more and more (RRD710).

Evidence
    The step from which it rises, the factor, and the p of the test.

Remedy
    Look at rollout_probs_diff first (verl: actor_rollout_ref.rollout.calculate_log_probs=True). Lower the learning rate, clip the gradient, look
    at the samples since that step.

Not this when
    It follows a schedule (learning rate, batch size), or rises from a very small start to where it stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from sys import modules

from ray_rl_debug.metrics.bench import Bench
from ray_rl_debug.metrics.judging import Drift, short
from ray_rl_debug.metrics.model import Judgement, Series
from ray_rl_debug.metrics.quantities import Quantity
from ray_rl_debug.metrics.shapes import Said, judge_drift, rises_by

ID = "RRD711"
NAME = "gradient norm rises"
RULE = modules[__name__]
KNOWN = "read RRD710 too: engine and trainer may disagree on probabilities"
UNKNOWN = "measure whether engine and trainer agree (verl: actor_rollout_ref.rollout.calculate_log_probs=True)"


def judge(bench: Bench) -> Iterator[Judgement]:
    """Each gradient norm by itself."""
    factor = bench.threshold("grad_norm_rise")
    first = KNOWN if bench.one(Quantity.PROBS_DIFF) is not None else UNKNOWN

    def say(_: Series, found: Drift) -> Said:
        remedy = (first, "lower the learning rate or clip the gradient", f"look at the samples since step {found.first_step}")
        return Said(remedy=remedy, before=f"rises by a factor of {short(found.factor)}: ")

    fine = f"does not rise by a factor of {factor:g}"
    yield from judge_drift(RULE, bench, Quantity.GRAD_NORM, say, up=True, is_large=rises_by(factor), fine=fine)
