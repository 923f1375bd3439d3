"""RRD226 broken log-probabilities

Story
    The engine gives log-probabilities that no model can give: NaN, positive ones, or none for tokens that it sampled.

Evidence
    How many, and the first token with such a number.

Remedy
    Start the engine in float32 or bfloat16 instead of float16, without quantisation, and compare again; then look at the weights for NaN.

Not this when
    The engine was not asked for log-probabilities at all.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from ray_rl_debug.model.report import Certainty
from ray_rl_debug.rollouts.alignment import spell
from ray_rl_debug.rollouts.answers import LOWEST, Cause, Found
from ray_rl_debug.rollouts.view import View

ID = "RRD226"
NAME = "broken log-probabilities"
CAUSE = Cause.BROKEN
ROUNDED_UP = 1e-3
"""A log-probability of 0 may come out a little above it."""


def detect(view: View) -> Iterator[Found]:
    """Numbers that are no log-probabilities of sampled tokens."""
    told, total = [], 0
    for pair in view.trial.pairs:
        row = pair.engine.logprobs or ()
        total += len(row)
        for at, value in enumerate(row):
            wrong = _wrong(value)
            if wrong is not None:
                ids = pair.engine.ids
                token = spell(ids[at], view.trial.pieces) if ids is not None and at < len(ids) else f"token {at + 1}"
                told.append(f"{token}, token {at + 1} of the answer to prompt {pair.engine.key}, has {wrong}")
    if told:
        yield Found(
            id=ID,
            name=NAME,
            cause=CAUSE,
            certainty=Certainty.PROVEN,
            summary=f"{len(told)} of {total} log-probabilities of the engine are none: {told[0]}",
            evidence=tuple(told[:5]),
            remedy=(
                "start the engine with --dtype float32 or bfloat16 and without quantisation, and compare again",
                "look for NaN in the checkpoint that it loaded",
            ),
        )


def _wrong(value: float | None) -> str | None:
    if value is None:
        return None
    if math.isnan(value):
        return "NaN"
    if value > ROUNDED_UP:
        return f"{value:.3g}, a probability above 1"
    return "probability 0, though it was sampled" if value <= LOWEST else None
