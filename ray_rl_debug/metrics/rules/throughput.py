"""RRD721 throughput falls

Story
    The run handles fewer tokens per second than before: something became slower, not longer.

Evidence
    The step from which the throughput falls, by how much, and the p of the test.

Remedy
    See which phase became slower (RRD720), then look at the run while it is slow: rayrl-debug timeline, and the numbers of the engine beside the
    steps.

Not this when
    Batches became smaller, or a phase was added by design. Where sequences grow by as much as it falls (attention takes time with the square of the
    length), it is told as *possible*; where both go on step by step, it is good.
"""

from __future__ import annotations

from collections.abc import Iterator
from sys import modules

from ray_rl_debug.metrics.bench import Bench
from ray_rl_debug.metrics.judging import Drift
from ray_rl_debug.metrics.lengths import beside_length
from ray_rl_debug.metrics.model import Judgement, Series
from ray_rl_debug.metrics.quantities import Quantity
from ray_rl_debug.metrics.shapes import Said, judge_drift

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

    def say(_: Series, found: Drift) -> Said | str:
        lengths = beside_length(bench, found)
        if lengths.is_course:
            return f"falls to {found.factor:.0%}, and {lengths.words}"
        after = f"; {lengths.words}" if lengths.words is not None else ""
        return Said(remedy=REMEDY, before=f"falls to {found.factor:.0%}: ", after=after, certainty=lengths.certainty)

    fine = f"at least {factor:.0%} of it is left"
    yield from judge_drift(RULE, bench, Quantity.THROUGHPUT, say, up=False, is_large=lambda before, now: now < factor * before, fine=fine)
