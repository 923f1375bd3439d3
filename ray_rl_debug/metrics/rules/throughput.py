"""RRD721 throughput falls

Story
    The run handles fewer tokens per second than before: something became slower, not longer.

Evidence
    The step from which the throughput falls, by how much, and the p of the test.

Remedy
    See which phase became slower (RRD720), then look at the run while it is slow: rayrl-debug timeline, and the numbers of the engine beside the
    steps.

Not this when
    Batches became smaller, or a phase was added by design.
"""

from __future__ import annotations

from collections.abc import Iterator
from sys import modules

from ray_rl_debug.metrics.bench import Bench
from ray_rl_debug.metrics.judging import bad, drift, good, too_short
from ray_rl_debug.metrics.model import Judgement
from ray_rl_debug.metrics.quantities import Quantity
from ray_rl_debug.model.report import Certainty

ID = "RRD721"
NAME = "throughput falls"
RULE = modules[__name__]
REMEDY = (
    "see which phase became slower: RRD720",
    "look at the run while it is slow: rayrl-debug timeline -o run.pftrace",
    "put the numbers of the engine beside the steps: rayrl-debug metrics --follow --engine URL",
)


def judge(bench: Bench) -> Iterator[Judgement]:
    """What is left of the throughput."""
    factor = bench.threshold("throughput_fall")
    for series in bench.all(Quantity.THROUGHPUT):
        if (early := too_short(RULE, series, bench.count("min_trend"))) is not None:
            yield early
            continue
        found = drift(bench, series, up=False, is_large=lambda before, now: now < factor * before)
        if found is None:
            yield good(RULE, series.name, f"at least {factor:.0%} of it is left")
            continue
        text = f"{series.name} falls to {found.factor:.0%}: {found.text()}"
        yield bad(RULE, series.name, Certainty.LIKELY, text, found.first_step, remedy=REMEDY, evidence=(found.evidence(),))
