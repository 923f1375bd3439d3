"""RRD717 steps are missing

Story
    Numbers of steps are left out: a logger that failed, a log that was cut, or steps that were not trained.

Evidence
    The first missing step, how many, and how often steps are logged else.

Remedy
    Look at the log of the trainer at that step, and at the disk and the network of the logger.

Not this when
    The metric is logged every few steps: that is learned from the metric itself. Steps that come twice after a restart from a checkpoint are no
    gap. Single steps out of hundreds, as an export leaves them out, are *possible* only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from sys import modules

from ray_rl_debug.metrics.bench import Bench
from ray_rl_debug.metrics.judging import bad, good, unknown
from ray_rl_debug.metrics.model import Judgement
from ray_rl_debug.model.report import Certainty

ID = "RRD717"
NAME = "steps are missing"
RULE = modules[__name__]
USUAL = 0.8
"""Part of the distances between steps that must be equal, before one that is larger means something."""
FEW = 0.01
"""Part of the steps that may be left out one by one before that says anything of the run."""
REMEDY = ("look at the log of the trainer at that step", "look at the disk or the network of the logger")


def judge(bench: Bench) -> Iterator[Judgement]:
    """The steps of all metrics together."""
    steps = bench.run.steps()
    if not steps:
        return
    if len(steps) < bench.count("min_points"):
        yield unknown(RULE, "steps", f"{len(steps)} of the {bench.count('min_points')} steps that it takes to judge")
        return
    distances = [b - a for a, b in pairwise(steps)]
    usual, often = Counter(distances).most_common(1)[0]
    if often < USUAL * len(distances):
        yield unknown(RULE, "steps", "steps are logged at no even distance")
        return
    gaps = [(a + usual, (d - usual) // usual) for a, d in zip(steps, distances, strict=False) if d >= 2 * usual]
    if not gaps:
        yield good(RULE, "steps", f"{steps[0]} to {steps[-1]}, every {f'{usual} steps' if usual > 1 else 'step'}")
        return
    missing = sum(n for _, n in gaps)
    places = ", ".join(f"{s}" if n == 1 else f"{s} to {s + (n - 1) * usual}" for s, n in gaps[:4]) + (", ..." if len(gaps) > 4 else "")
    text = f"{missing} of {len(steps) + missing} steps are missing: {places}"
    if missing <= FEW * len(steps) and all(n == 1 for _, n in gaps):
        yield bad(RULE, "steps", Certainty.POSSIBLE, f"{text}; single ones, as an export or a busy logger leaves them out", gaps[0][0], remedy=REMEDY)
        return
    yield bad(RULE, "steps", Certainty.PROVEN, text, gaps[0][0], remedy=REMEDY)
