"""RRD712 KL too large

Story
    The policy moves too far: from its last version within one update, or away from the reference over the run. Answers become odd before the
    reward shows it.

Evidence
    The KL over several steps, against a limit for each kind. Below the limit a KL that takes off is told as *possible*: from a certain step on it
    rises to many times what it was, and to a good part of the limit.

Remedy
    KL of the update: lower the learning rate, fewer updates from one batch. KL to the reference: a larger kl_loss_coef or kl_coef, and a look at
    the samples.

Not this when
    The run trains without a reference on purpose (DAPO and such): then its distance to the start is no fault by itself; set --threshold
    reference_kl=VALUE.
"""

from __future__ import annotations

from collections.abc import Iterator
from sys import modules

from ray_rl_debug.metrics.bench import Bench
from ray_rl_debug.metrics.judging import bad, drift, short
from ray_rl_debug.metrics.model import Judgement, Status
from ray_rl_debug.metrics.quantities import Quantity
from ray_rl_debug.metrics.shapes import Limit, Said, judge_limit
from ray_rl_debug.model.report import Certainty

ID = "RRD712"
NAME = "KL too large"
RULE = modules[__name__]
KINDS = (
    (Quantity.POLICY_KL, "policy_kl", "lower the learning rate, or make fewer updates from one batch"),
    (Quantity.REFERENCE_KL, "reference_kl", "a larger kl_loss_coef (kl_coef); compare samples with those of the reference"),
)


def judge(bench: Bench) -> Iterator[Judgement]:
    """Both kinds of KL, each with its own limit; an estimate of it may be negative."""
    for quantity, name, remedy in KINDS:
        value = bench.threshold(name)
        limit = Limit(how_far=lambda v, value=value: abs(v) - value, told=f"at most {value:g}", high=value)  # type: ignore[misc]
        for found in judge_limit(RULE, bench, quantity, limit, lambda _, remedy=remedy: Said(remedy=(remedy,))):  # type: ignore[misc]
            yield (_takes_off(bench, quantity, value, remedy) or found) if found.status is Status.GOOD else found


def _takes_off(bench: Bench, quantity: Quantity, limit: float, remedy: str) -> Judgement | None:
    """Away from zero every KL rises at first; so a rise counts from where it was something already."""
    factor, part = bench.threshold("kl_rise"), bench.threshold("kl_part")
    series = bench.one(quantity)
    if series is None or len(series.finite()[0]) < bench.count("min_trend"):
        return None
    found = drift(bench, series, up=True, is_large=lambda before, now: now > part * limit and 0 < before < now / factor, logarithm=False)
    if found is None or found.from_start or found.is_doubtful:
        return None
    text = f"{series.name} takes off: {found.text()}, by a factor of {short(found.factor)}; still below its limit of {limit:g}"
    return bad(RULE, series.name, Certainty.POSSIBLE, text, found.first_step, high=limit, remedy=(remedy,), evidence=(found.evidence(),))
