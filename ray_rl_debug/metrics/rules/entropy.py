"""RRD714 entropy collapses

Story
    The entropy of the policy falls to a small part of what it was: answers become alike, groups of equal rewards teach nothing, and the reward
    stops to rise.

Evidence
    The step at which the entropy begins to fall, what is left of it, and the p of the test.

Remedy
    A larger entropy coefficient or a wider upper clip (clip_ratio_high); sample at temperature 1; a lower learning rate; prompts that are not yet
    solved.

Not this when
    The reward is near its best: then a small entropy is the success of the training. A slow fall is usual; only what is left below a part of the
    start counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from sys import modules

from ray_rl_debug.metrics.bench import Bench
from ray_rl_debug.metrics.judging import bad, drift, good, too_short
from ray_rl_debug.metrics.model import Judgement
from ray_rl_debug.metrics.quantities import Quantity
from ray_rl_debug.model.report import Certainty

ID = "RRD714"
NAME = "entropy collapses"
RULE = modules[__name__]
REMEDY = (
    "a larger entropy coefficient, or a wider upper clip (clip_ratio_high)",
    "sample at temperature 1; take prompts that are not solved yet",
    "a lower learning rate, from a checkpoint before that step",
)


def judge(bench: Bench) -> Iterator[Judgement]:
    """What is left of the entropy."""
    factor = bench.threshold("entropy_fall")
    for series in bench.all(Quantity.ENTROPY):
        if (early := too_short(RULE, series, bench.count("min_trend"))) is not None:
            yield early
            continue
        found = drift(bench, series, up=False, is_large=lambda before, now: before > 0 and now < factor * before)
        if found is None:
            yield good(RULE, series.name, f"more than {factor:.0%} of it is left")
            continue
        text = f"{series.name} falls to {max(found.factor, 0):.0%} of what it was: {found.text()}"
        yield bad(RULE, series.name, Certainty.LIKELY, text, found.first_step, remedy=REMEDY, evidence=(found.evidence(),))
