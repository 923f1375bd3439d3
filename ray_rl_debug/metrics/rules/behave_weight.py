"""RRD703 behaviour weight away from 1

Story
    behave_imp_weight corrects for samples that an older policy made. Its average leaves 1: the samples are too old, the engine computes other
    probabilities than the trainer, or no cap keeps single tokens from dominating.

Evidence
    The metric's average against 1 over several steps; the cap and the allowed staleness where they are known.

Remedy
    Set behave_imp_weight_cap (recommended: 5); if that does not help, reduce max_head_offpolicyness. To see whether staleness is the reason at all,
    train synchronously once: rollout.max_head_offpolicyness=0, actor.recompute_logprob=false, actor.use_decoupled_loss=false.

Not this when
    Training is synchronous: then the weight only shows how engine and trainer differ (see RRD710).
"""

from __future__ import annotations

from collections.abc import Iterator
from sys import modules

from ray_rl_debug.metrics.advice import SYNCHRONOUS
from ray_rl_debug.metrics.bench import Bench
from ray_rl_debug.metrics.judging import bad, beyond, good, too_short
from ray_rl_debug.metrics.model import Judgement
from ray_rl_debug.metrics.quantities import Quantity

ID = "RRD703"
NAME = "behaviour weight away from 1"
RULE = modules[__name__]


def judge(bench: Bench) -> Iterator[Judgement]:
    """The average; the cap decides what is advised first."""
    limit = bench.threshold("behave_imp_weight")
    recommended = bench.threshold("behave_imp_weight_cap")
    cap, allowed = bench.number("behave_imp_weight_cap"), bench.setting("max_head_offpolicyness")
    for series in bench.all(Quantity.BEHAVE_IMP_WEIGHT):
        if (early := too_short(RULE, series, bench.count("min_points"))) is not None:
            yield early
            continue
        found = beyond(bench, series, lambda v: abs(v - 1) > limit)
        if found is None:
            yield good(RULE, series.name, f"within {limit:g} of 1", low=1 - limit, high=1 + limit)
            continue
        capped = (
            f"behave_imp_weight_cap is {cap:g}; {recommended:g} is recommended" if cap is not None else f"set behave_imp_weight_cap={recommended:g}"
        )
        fresher = "reduce max_head_offpolicyness" + (f" (now {allowed})" if allowed is not None else "")
        remedy = (fresher, SYNCHRONOUS) if cap is not None and cap <= recommended else (capped, f"if it stays: {fresher}", SYNCHRONOUS)
        text = f"{series.name} is {found.text(f'within {limit:g} of 1')}"
        yield bad(RULE, series.name, found.certainty, text, found.first_step, low=1 - limit, high=1 + limit, remedy=remedy)
