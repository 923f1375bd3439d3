"""RRD230 the prompt is cut

Story
    The engine reads only a part of a long prompt: a limit drops its beginning, middle or end (truncate_prompt_tokens, a context that is too short, a
    proxy). Short prompts agree, so templates and tokenizers are equal. The model answers to a question of which it has not seen all.

Evidence
    How many prompts are shorter in the engine, all of one length, and what is left out of the first of them.

Remedy
    Start the engine with a longer context, or filter prompts that are too long where the trainer reads them.

Not this when
    The same words are missing from each prompt: then it is the chat template.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ray_rl_debug.model.report import Certainty
from ray_rl_debug.rollouts.alignment import changes, common
from ray_rl_debug.rollouts.answers import Cause, Found
from ray_rl_debug.rollouts.view import View

ID = "RRD230"
NAME = "the prompt is cut"
CAUSE = Cause.PROMPT
REMEDY = (
    "start the engine with a longer context (vllm serve --max-model-len, sglang --context-length), and without truncate_prompt_tokens",
    "or leave out prompts that are too long where the trainer reads them (verl: data.filter_overlong_prompts)",
)


def detect(view: View) -> Iterator[Found]:
    """Prompts of which the engine has a part, all of one length, while shorter ones are whole."""
    told = _by_ids(view) or _by_count(view)
    if told is not None:
        yield told


def _by_ids(view: View) -> Found | None:
    known = [(p.engine.key, p.engine.prompt_ids, p.prompt_ids) for p in view.trial.pairs if p.engine.prompt_ids and p.prompt_ids]
    apart = [k for k in known if k[1] != k[2]]
    if not all(_is_part(ours, theirs) for _, ours, theirs in apart) or not _has_limit([(len(a), len(b)) for _, a, b in known]):
        return None
    if len(apart) > 1 and len({_left_out(ours, theirs) for _, ours, theirs in apart}) == 1:
        return None
    key, ours, theirs = apart[0]
    words = changes(ours, theirs, view.trial.pieces)
    return _found(len(apart), len(known), len(ours), key, len(theirs), words[0], Certainty.PROVEN)


def _by_count(view: View) -> Found | None:
    """Where the engine only tells how long a prompt is."""
    known = [
        (p.engine.key, p.engine.prompt_count, len(p.prompt_ids))
        for p in view.trial.pairs
        if p.engine.prompt_ids is None and p.engine.prompt_count is not None and p.prompt_ids
    ]
    apart = [k for k in known if k[1] != k[2]]
    if not _has_limit([k[1:] for k in known]) or (len(apart) > 1 and len({theirs - ours for _, ours, theirs in apart}) == 1):
        return None
    key, ours, theirs = apart[0]
    return _found(len(apart), len(known), ours, key, theirs, "the engine does not tell its tokens", Certainty.LIKELY)


def _found(cut: int, known: int, limit: int, key: str, length: int, words: str, certainty: Certainty) -> Found:
    said = f"the engine cuts prompts to {limit} tokens: {cut} of {known} prompts are longer"
    return Found(
        id=ID,
        name=NAME,
        cause=CAUSE,
        certainty=certainty,
        summary=f"{said}; of prompt {key} it reads {limit} of {length} tokens; {words}",
        evidence=(f"{cut} prompts have {limit} tokens in the engine and more in the reference; the other {known - cut} are equal",),
        remedy=REMEDY,
    )


def _has_limit(lengths: Sequence[tuple[int, int]]) -> bool:
    """What is shorter in the engine has one length there, and nothing is longer; some prompt is whole, or they lose different numbers of tokens."""
    cut = [(ours, theirs) for ours, theirs in lengths if ours != theirs]
    limits = {ours for ours, _ in cut}
    if len(limits) != 1 or any(ours > theirs for ours, theirs in cut):
        return False
    (limit,) = limits
    whole = [ours for ours, theirs in lengths if ours == theirs]
    return all(ours <= limit for ours in whole) and (bool(whole) or len({theirs for _, theirs in cut}) > 1)


def _is_part(ours: Sequence[int], theirs: Sequence[int]) -> bool:
    """What is left after one piece was taken out at the beginning, in the middle or at the end."""
    return len(ours) < len(theirs) and common(ours, theirs) + common(ours[::-1], theirs[::-1]) >= len(ours)


def _left_out(ours: Sequence[int], theirs: Sequence[int]) -> tuple[int, ...]:
    at = common(ours, theirs)
    return tuple(theirs[at : at + len(theirs) - len(ours)])
