"""RRD224 log-probabilities after temperature

Story
    The engine gives log-probabilities after division by the sampling temperature, the reference before it (or the trainer expects them so).
    Importance weights are then wrong for every token, though both models are the same.

Evidence
    The mean difference of the engine's numbers from the reference before and after temperature.

Remedy
    Tell the trainer which of the two it gets, or sample with temperature 1; vLLM: --logprobs-mode raw_logprobs or processed_logprobs.

Not this when
    The temperature is 0 or 1: then both are the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean

from ray_rl_debug.model.report import Certainty
from ray_rl_debug.rollouts.answers import Cause, Found
from ray_rl_debug.rollouts.differences import places
from ray_rl_debug.rollouts.view import View

ID = "RRD224"
NAME = "log-probabilities after temperature"
CAUSE = Cause.TEMPERATURE


def detect(view: View) -> Iterator[Found]:
    """Numbers of the engine that fit the reference only after temperature."""
    if not view.is_scaled or view.distance is None:
        return
    raw = fmean(abs(p.gap) for p in places(view.trial))
    yield Found(
        id=ID,
        name=NAME,
        cause=CAUSE,
        certainty=Certainty.LIKELY,
        summary=f"the engine gives log-probabilities after temperature {view.trial.temperature:g}: they differ from the reference by {raw:.3g} nats "
        f"per token before temperature, by {view.distance.logprob_diff_mean:.3g} after it",
        evidence=("all other numbers here compare with the reference after temperature",),
        remedy=(
            "let the trainer divide its logits by the same temperature (verl does)",
            "or ask the engine for raw ones: vllm serve --logprobs-mode raw_logprobs",
        ),
        is_trouble=False,
    )
