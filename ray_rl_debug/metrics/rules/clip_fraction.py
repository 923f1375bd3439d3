"""RRD713 too many tokens clipped

Story
    A large part of the tokens reaches the clip of the policy ratio: each update is larger than the method allows, and much of it is thrown away.

Evidence
    The clip fraction over several steps.

Remedy
    Lower the learning rate, or make fewer updates from one batch (minibatches, epochs). If importance_weight is off too, read RRD702 first.

Not this when
    The clip range is very narrow on purpose (GSPO clips at some 1e-4, where a third and more is usual): set --threshold clip_fraction=VALUE.
"""

from __future__ import annotations

from collections.abc import Iterator
from sys import modules

from ray_rl_debug.metrics.bench import Bench
from ray_rl_debug.metrics.judging import bad, beyond, good, too_short
from ray_rl_debug.metrics.model import Judgement
from ray_rl_debug.metrics.quantities import Quantity

ID = "RRD713"
NAME = "too many tokens clipped"
RULE = modules[__name__]
REMEDY = (
    "lower the learning rate, or make fewer updates from one batch (minibatches, epochs)",
    "read RRD702 first where importance_weight is off too",
)


def judge(bench: Bench) -> Iterator[Judgement]:
    """The fraction against its limit."""
    limit = bench.threshold("clip_fraction")
    for series in bench.all(Quantity.CLIP_FRACTION):
        if (early := too_short(RULE, series, bench.count("min_points"))) is not None:
            yield early
            continue
        found = beyond(bench, series, lambda v: v > limit)
        if found is None:
            yield good(RULE, series.name, f"at most {limit:g}", high=limit)
            continue
        text = f"{series.name} is {found.text(f'at most {limit:g}')}"
        yield bad(RULE, series.name, found.certainty, text, found.first_step, high=limit, remedy=REMEDY)
