"""RRD223 wrong end token

Story
    The engine ends answers at another token than the reference: it runs past the end token into a second turn, or stops too early. Lengths, masks and
    rewards are then wrong, while log-probabilities agree.

Evidence
    Answers that go on after an end token of the reference, answers that end at a token which is none, and where each end token is written.

Remedy
    Make eos_token_id in generation_config.json, the tokenizer's eos_token and the stop tokens that the trainer sends the same.

Not this when
    The request itself asks to ignore the end (ignore_eos, min_tokens) or names other stop tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ray_rl_debug.model.report import Certainty
from ray_rl_debug.rollouts.alignment import before, spell
from ray_rl_debug.rollouts.answers import Answer, Cause, Found, Pair
from ray_rl_debug.rollouts.view import View

ID = "RRD223"
NAME = "wrong end token"
CAUSE = Cause.END_TOKEN
CLEAR = 0.5
"""Nats by which the reference prefers its end token before we say that the engine avoids it."""


def detect(view: View) -> Iterator[Found]:
    """Answers that do not end where the reference's end tokens are."""
    ends = view.trial.end_tokens
    if not ends:
        return
    answered = [p for p in view.trial.pairs if p.engine.ids]
    past = [(p, at) for p in answered if (at := _runs_past(p.engine, ends)) is not None]
    early = [p for p in answered if _stops_at_stranger(p.engine, ends)]
    avoided = [] if past else [(p, at) for p in answered if (at := _avoids(p, ends, view)) is not None]
    if not (past or early or avoided):
        return
    told, evidence = [], []
    if past:
        pair, at = past[0]
        ids = pair.engine.ids or ()
        told.append(f"{len(past)} of {len(answered)} answers go on after the end token {_named(ids[at], view)}")
        evidence.append(f"prompt {pair.engine.key}: {spell(ids[at], view.trial.pieces)} is token {at + 1} of {len(ids)} in the answer")
    if early:
        ids = early[0].engine.ids or ()
        told.append(f"{len(early)} of {len(answered)} answers end at {_named(ids[-1], view)}, which is no end token of the reference")
        evidence.append(f"prompt {early[0].engine.key} ends {before(ids, len(ids), view.trial.pieces)}")
    if avoided:
        pair, at = avoided[0]
        told.append(f"{len(avoided)} of {len(answered)} answers take another token where the reference clearly ends")
        evidence.append(f"prompt {pair.engine.key}, token {at + 1}: the reference prefers its end token")
    yield Found(
        id=ID,
        name=NAME,
        cause=CAUSE,
        certainty=Certainty.PROVEN if past or any(p.engine.stop is not None for p in early) else Certainty.LIKELY,
        summary="the end token differs: " + "; ".join(told),
        evidence=(*evidence, *(f"end token of the reference: {spell(t, view.trial.pieces)}, from {where}" for t, where in ends.items())),
        remedy=(
            "make eos_token_id of generation_config.json, eos_token of the tokenizer and the stop tokens of the request the same",
            "vLLM takes end tokens from generation_config.json of the served folder: look at --generation-config and --override-generation-config",
        ),
    )


def _named(token: int, view: View) -> str:
    return spell(token, view.trial.pieces)


def _runs_past(answer: Answer, ends: Mapping[int, str]) -> int | None:
    """The place of an end token that is not the last token."""
    return next((at for at, token in enumerate((answer.ids or ())[:-1]) if token in ends), None)


def _stops_at_stranger(answer: Answer, ends: Mapping[int, str]) -> bool:
    ids = answer.ids or ()
    if answer.finish != "stop" or ids[-1] in ends or isinstance(answer.stop, str):
        return False
    if isinstance(answer.stop, int):
        return answer.stop not in ends
    # Some engines do not give the end token away; they count one token more than they tell.
    return answer.count is not None and answer.count == len(ids)


def _avoids(pair: Pair, ends: Mapping[int, str], view: View) -> int | None:
    """Greedy only: where the reference clearly prefers an end token and the engine takes another one."""
    score, ids = pair.score, pair.engine.ids
    if view.trial.temperature != 0 or score is None or ids is None or score.best_ids is None or score.best_logprobs is None:
        return None
    for at, (token, best, best_logprob, logprob) in enumerate(zip(ids, score.best_ids, score.best_logprobs, score.logprobs, strict=False)):
        if best in ends and token not in ends and logprob is not None and best_logprob - logprob > CLEAR:
            return at
    return None
