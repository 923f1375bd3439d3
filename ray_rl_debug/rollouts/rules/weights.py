"""RRD228 the weights differ

Story
    Engine and reference give the same tokens clearly other probabilities, more than rounding explains: another checkpoint, a layer that was not
    loaded, an adapter on one side only, a quantised copy, or another implementation of the model.

Evidence
    The mean difference against what another precision alone makes, and the tokens with the largest differences.

Remedy
    Load the engine anew from the checkpoint of the reference and compare again; if it then agrees, the weight update is at fault.

Not this when
    The prompts of the two sides differ and the tokens could not be scored after the engine's own prompt.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.model.report import Certainty
from ray_rl_debug.rollouts.answers import Cause, Found
from ray_rl_debug.rollouts.rules import attention, output_rows, update
from ray_rl_debug.rollouts.view import Size, View, numbers, worst

ID = "RRD228"
NAME = "the weights differ"
CAUSE = Cause.WEIGHTS


def detect(view: View) -> Iterator[Found]:
    """Differences clearly larger than rounding; silent where a missing weight update or attention explains them."""
    far = view.distance
    if view.size is not Size.LARGER or far is None or any(next(rule.detect(view), None) is not None for rule in (update, output_rows, attention)):
        return
    if view.noise is None:
        times = "more than rounding usually makes"
    else:
        times = f"{far.logprob_diff_mean / view.noise:.0f} times what {view.trial.rounding} instead of {view.trial.precision} makes"
    yield Found(
        id=ID,
        name=NAME,
        cause=CAUSE,
        certainty=Certainty.POSSIBLE if view.noise is None else Certainty.LIKELY,
        summary=f"the weights differ (or the model's configuration or code): log-probabilities are {far.logprob_diff_mean:.2g} nats apart, {times}; "
        f"the largest is at {view.name(worst(view, 1)[0])}",
        evidence=tuple(numbers(view)),
        remedy=(
            "load the engine anew from the reference's folder and compare again: if it agrees then, the weight update is at fault (--after-update)",
            "look for adapters, quantisation and load warnings (unused or newly initialised weights) in both logs",
        ),
    )
