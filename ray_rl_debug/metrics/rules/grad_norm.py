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
from ray_rl_debug.metrics.judging import bad, drift, good, short, too_short
from ray_rl_debug.metrics.model import Judgement
from ray_rl_debug.metrics.quantities import Quantity
from ray_rl_debug.model.report import Certainty

ID = "RRD711"
NAME = "gradient norm rises"
RULE = modules[__name__]
KNOWN = "read RRD710 too: engine and trainer may disagree on probabilities"
UNKNOWN = "measure whether engine and trainer agree (verl: actor_rollout_ref.rollout.calculate_log_probs=True)"


def judge(bench: Bench) -> Iterator[Judgement]:
    """Each gradient norm by itself."""
    factor = bench.threshold("grad_norm_rise")
    for series in bench.all(Quantity.GRAD_NORM):
        if (early := too_short(RULE, series, bench.count("min_trend"))) is not None:
            yield early
            continue
        found = drift(bench, series, up=True, is_large=lambda before, now: before > 0 and now > factor * before)
        if found is None:
            yield good(RULE, series.name, f"does not rise by a factor of {factor:g}")
            continue
        first = KNOWN if bench.one(Quantity.PROBS_DIFF) is not None else UNKNOWN
        remedy = (first, "lower the learning rate or clip the gradient", f"look at the samples since step {found.first_step}")
        text = f"{series.name} rises by a factor of {short(found.factor)}: {found.text()}"
        yield bad(RULE, series.name, Certainty.LIKELY, text, found.first_step, remedy=remedy, evidence=(found.evidence(),))
