"""RRD225 other tokens are chosen

Story
    Engine and reference compute the same probabilities, but the engine chooses other tokens: not the best one where that was asked for, or tokens
    that are on average more or less probable than sampling at this temperature makes them. Something between the model and the sampler changes the
    choice: a repetition penalty, top_k or top_p from generation_config.json, a logit bias, a grammar, min_tokens, another temperature.

Evidence
    Greedy: a token that the engine took, and the better one that the reference would have taken, with both log-probabilities. Sampled: how much more
    probable the tokens are than chance makes them, in standard deviations, and the rank of the rarest one.

Remedy
    Send all sampling parameters with each request; start vLLM with --generation-config vllm so that the model's folder adds none.

Not this when
    The two tokens are as good as each other within the numerical difference of the two sides.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.model.report import Certainty
from ray_rl_debug.rollouts import chance
from ray_rl_debug.rollouts.alignment import spell
from ray_rl_debug.rollouts.answers import Cause, Found
from ray_rl_debug.rollouts.view import Size, View, worst

ID = "RRD225"
NAME = "other tokens are chosen"
CAUSE = Cause.CHOICE
CLEAR = 0.05
"""Nats between two tokens before one is clearly better; twice the largest difference of the two sides if that is more."""
REMEDY = (
    "send repetition_penalty, frequency_penalty, logit_bias and min_tokens with each request",
    "start vLLM with --generation-config vllm: then generation_config.json of the model adds no penalty",
)


def detect(view: View) -> Iterator[Found]:
    """Tokens that the reference would not choose like this, while the log-probabilities agree."""
    if view.size in (Size.SAME, Size.ROUNDING):
        yield from _greedy(view) if view.trial.temperature == 0 else _sampled(view)


def _sampled(view: View) -> Iterator[Found]:
    """Tokens that are more or less probable than sampling makes them."""
    found = chance.measure(view.trial)
    if found is None or not found.is_sure or view.distance is None or abs(found.mean) < view.distance.logprob_diff_mean:
        return
    more = found.mean > 0
    how = f"{'more' if more else 'less'} probable than sampling at temperature {view.trial.temperature:g} makes them, by {abs(found.mean):.2g} nats"
    evidence = [f"mean excess {found.mean:+.2g} nats over {found.tokens} tokens, {abs(found.deviations):.0f} standard deviations from chance"]
    if found.plain is not None and abs(found.plain) < chance.SURE / 2:
        evidence.append(f"the tokens fit temperature 1: the engine does not use {view.trial.temperature:g}")
    elif more:
        ranks = "only the most probable token is taken" if found.rarest == 1 else f"the rarest token taken is number {found.rarest} of its place"
        evidence.append(f"{ranks}: a top_k or a lower temperature would do this, or top_p")
    else:
        evidence.append("a higher temperature or a penalty would do this")
    yield Found(
        id=ID,
        name=NAME,
        cause=CAUSE,
        certainty=Certainty.LIKELY,
        summary=f"the probabilities agree, but the engine does not draw from them: its tokens are {how} a token; {evidence[1]}",
        evidence=tuple(evidence),
        remedy=(
            "send temperature, top_p, top_k, min_p and penalties with each request, the same that the trainer counts with",
            "start vLLM with --generation-config vllm: then generation_config.json of the model adds no top_k, top_p or temperature",
        ),
    )


def _greedy(view: View) -> Iterator[Found]:
    """Greedy answers with a token that is clearly not the best."""
    trial = view.trial
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
        remedy=REMEDY,
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
