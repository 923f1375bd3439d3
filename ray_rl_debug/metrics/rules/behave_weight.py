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
from ray_rl_debug.metrics.model import Judgement
from ray_rl_debug.metrics.quantities import Quantity
from ray_rl_debug.metrics.shapes import Said, judge_limit, near_one

ID = "RRD703"
NAME = "behaviour weight away from 1"
RULE = modules[__name__]


def judge(bench: Bench) -> Iterator[Judgement]:
    """The average; the cap decides what is advised first."""
    recommended = bench.threshold("behave_imp_weight_cap")
    cap, allowed = bench.number("behave_imp_weight_cap"), bench.setting("max_head_offpolicyness")
    capped = f"behave_imp_weight_cap is {cap:g}; {recommended:g} is recommended" if cap is not None else f"set behave_imp_weight_cap={recommended:g}"
    fresher = "reduce max_head_offpolicyness" + (f" (now {allowed})" if allowed is not None else "")
    remedy = (fresher, SYNCHRONOUS) if cap is not None and cap <= recommended else (capped, f"if it stays: {fresher}", SYNCHRONOUS)
    limit = near_one(bench.threshold("behave_imp_weight"))
    yield from judge_limit(RULE, bench, Quantity.BEHAVE_IMP_WEIGHT, limit, lambda _: Said(remedy=remedy))
