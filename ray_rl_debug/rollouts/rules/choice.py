"""RRD225 other tokens are chosen

Story
    Engine and reference compute the same probabilities, but the engine, asked for the best token, takes another one. Something between the model and
    the sampler changes the choice: a repetition penalty from generation_config.json, a logit bias, a grammar, min_tokens.

Evidence
    A token that the engine took, and the better one that the reference would have taken, with both log-probabilities.

Remedy
    Send all sampling parameters with each request; start vLLM with --generation-config vllm so that the model's folder adds none.

Not this when
    The two tokens are as good as each other within the numerical difference of the two sides.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.model.report import Certainty
from ray_rl_debug.rollouts.alignment import spell
from ray_rl_debug.rollouts.answers import Cause, Found
from ray_rl_debug.rollouts.view import Size, View, worst

ID = "RRD225"
NAME = "other tokens are chosen"
CAUSE = Cause.CHOICE
CLEAR = 0.05
"""Nats between two tokens before one is clearly better; twice the largest difference of the two sides if that is more."""


def detect(view: View) -> Iterator[Found]:
    """Greedy answers with a token that is clearly not the best, while the log-probabilities agree."""
    trial = view.trial
    if trial.temperature != 0 or view.size not in (Size.SAME, Size.ROUNDING):
        return
    clear = max(CLEAR, 2 * max(abs(p.gap) for p in view.places))
    ends = trial.end_tokens or {}
    told = []
    for place in view.places:
        score = trial.pairs[place.pair].score
        if score is None or score.best_ids is None or score.best_logprobs is None:
            continue
        best, better = score.best_ids[place.at], score.best_logprobs[place.at]
        if best != place.token and best not in ends and better - place.reference > clear:
            told.append((place, best, better))
    if not told:
        return
    place, best, better = told[0]
    yield Found(
        id=ID,
        name=NAME,
        cause=CAUSE,
        certainty=Certainty.LIKELY,
        summary=f"the probabilities agree, but {len(told)} of {len(view.places)} greedy tokens are not the best ones: "
        f"the engine took {view.name(place)} with log-probability {place.reference:.2f} where {spell(best, trial.pieces)} has {better:.2f}",
        evidence=tuple(f"{view.name(p)}: {spell(b, trial.pieces)} is better by {lp - p.reference:.2f} nats" for p, b, lp in told[:4]),
        remedy=(
            "send repetition_penalty, frequency_penalty, logit_bias and min_tokens with each request",
            "start vLLM with --generation-config vllm: then generation_config.json of the model adds no penalty",
        ),
    )


def ties(view: View) -> int:
    """How many greedy tokens of the engine are not the reference's best, but as good within the numerical difference."""
    if view.trial.temperature != 0 or not view.places:
        return 0
    clear = max(CLEAR, 2 * max(abs(p.gap) for p in worst(view, len(view.places))))
    count = 0
    for p in view.places:
        score = view.trial.pairs[p.pair].score
        if score is not None and score.best_ids is not None and score.best_logprobs is not None and score.best_ids[p.at] != p.token:
            count += score.best_logprobs[p.at] - p.reference <= clear
    return count
