"""RRD716 rollouts aborted or thrown away

Story
    Rollouts are aborted, or evicted because they failed or grew too old. The compute for them is lost, and those that are left are not a fair
    sample: long and hard ones are lost first. Where all of them are rejected, no batch comes together, and no step follows.

Evidence
    The ratio of aborted rollouts, the count of evicted ones, over several steps; what AReaL's executor says of its rollouts
    (rollout.enable_rollout_tracing): how many were rejected since one was accepted.

Remedy
    Look why: time limits of tools, an engine that preempts for lack of cache, a staleness limit that is too tight for the longest answers.
    All rejected: give some trajectories to should_accept_fn by hand.

Not this when
    Partial rollouts are aborted and resumed by design. A filter rejects most rollouts, as it should, and some are accepted between them.
"""

from __future__ import annotations

from collections.abc import Iterator
from sys import modules

from ray_rl_debug.metrics.bench import Bench
from ray_rl_debug.metrics.judging import bad, good
from ray_rl_debug.metrics.model import Judgement
from ray_rl_debug.metrics.quantities import Quantity
from ray_rl_debug.metrics.shapes import Said, at_most, judge_limit
from ray_rl_debug.model.report import Certainty

ID = "RRD716"
NAME = "rollouts aborted or thrown away"
RULE = modules[__name__]
REMEDY = (
    "look at time limits of tools and reward services",
    "look whether the engine preempts requests for lack of cache (rayrl-debug metrics --follow --engine URL)",
    "give long answers more time: a higher staleness limit, or partial rollouts",
)


REJECTED = (
    "give some trajectories to should_accept_fn by hand: which of its conditions is never met?",
    "look for exceptions of the workflow in the log: they count as rejected",
)


def judge(bench: Bench) -> Iterator[Judgement]:
    """Ratio and counts, each against its limit; rollouts that are all rejected."""
    for quantity, name in ((Quantity.ABORTED_RATIO, "aborted_ratio"), (Quantity.EVICTED, "evicted_samples")):
        yield from judge_limit(RULE, bench, quantity, at_most(bench.threshold(name)), lambda _: Said(remedy=REMEDY))
    told = bench.run.rollouts
    if told is None:
        return
    if told.rejected_since < bench.count("rejected_in_row"):
        yield good(RULE, "rollouts", f"{told.accepted:,} accepted, {told.rejected:,} rejected")
        return
    steps = bench.run.steps()
    accepted = f"none after the first {told.accepted:,} was accepted" if told.accepted else "none was ever accepted"
    text = f"the last {told.rejected_since:,} rollouts were all rejected, and {accepted}: no batch comes together, and no step follows"
    yield bad(RULE, "rollouts", Certainty.LIKELY, text, steps[-1] + 1 if steps else None, remedy=REJECTED)
