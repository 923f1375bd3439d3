"""RRD718 no training step

Story
    The run ended, or says that it is complete, and has not trained a single step: an error was swallowed, the data set is empty or smaller than a
    batch, or every prompt was filtered out.

Evidence
    No metrics of training, and a last line that says the run has ended.

Remedy
    Look at the log from its beginning for the first error. Compare the size of the data set with the batch size, and what filters leave of it.

Not this when
    The run has only begun, or was a validation on purpose (val_only).
"""

from __future__ import annotations

from collections.abc import Iterator
from sys import modules

from ray_rl_debug.metrics.bench import Bench
from ray_rl_debug.metrics.judging import bad, good, unknown
from ray_rl_debug.metrics.model import Judgement
from ray_rl_debug.metrics.quantities import Quantity
from ray_rl_debug.model.report import Certainty

ID = "RRD718"
NAME = "no training step"
RULE = modules[__name__]
TRAINING = (Quantity.REWARD, Quantity.GRAD_NORM, Quantity.LOSS, Quantity.POLICY_KL, Quantity.ENTROPY)
REMEDY = (
    "look at the log from its beginning for the first error",
    "compare the size of the data set with the batch size, and what filters leave of it",
)


def judge(bench: Bench) -> Iterator[Judgement]:
    """Metrics that only training writes."""
    steps = {s for q in TRAINING for one in bench.all(q) for s in one.steps}
    if steps:
        yield good(RULE, "steps", f"{len(steps)} training steps")
    elif bench.run.is_ended:
        begun = "metrics of validation only" if bench.run.series else "no metrics"
        yield bad(RULE, "steps", Certainty.LIKELY, f"the run has ended without a training step: {begun}", 0, remedy=REMEDY)
    else:
        yield unknown(RULE, "steps", "no training step is in the source")
