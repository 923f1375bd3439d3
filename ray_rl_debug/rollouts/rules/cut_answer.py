"""RRD239 answers are cut early

Story
    The engine says that an answer reached its longest length, though it has fewer tokens than were asked for: a limit of the server (vLLM's
    override of max_new_tokens, a proxy), or a context that prompt and answer fill. The trainer counts such answers as too long, and they have no end.

Evidence
    How many answers, after how many tokens, and whether prompt and answer together always have one length.

Remedy
    Start the engine with a longer context or without its own limit of new tokens, or ask for fewer tokens than fit.

Not this when
    The answer ends by itself or at a stop word: then the engine does not call it cut.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.model.report import Certainty
from ray_rl_debug.rollouts.answers import Answer, Cause, Found
from ray_rl_debug.rollouts.view import View

ID = "RRD239"
NAME = "answers are cut early"
CAUSE = Cause.LENGTH


def detect(view: View) -> Iterator[Found]:
    """Answers that the engine calls too long before they are as long as they may be."""
    asked = view.trial.max_tokens
    given = [p.engine for p in view.trial.pairs if p.engine.error is None]
    # Some engines do not count the last token.
    cut = [(a, n) for a in given if asked is not None and a.finish == "length" and (n := _length(a)) is not None and n < asked - 1]
    if not cut:
        return
    first, length = cut[0]
    lengths = {n for _, n in cut}
    whole = {n + len(a.prompt_ids) if a.prompt_ids else None for a, n in cut}
    if len(lengths) == 1:
        why = f"always after {length} tokens: a limit of the server"
    elif len(whole) == 1 and None not in whole:
        why = f"always where prompt and answer together have {whole.pop()} tokens: the engine's context is full"
    else:
        why = f"the first after {length} tokens"
    yield Found(
        id=ID,
        name=NAME,
        cause=CAUSE,
        certainty=Certainty.PROVEN,
        summary=f"the engine cuts answers before the {asked} tokens that were asked for: {len(cut)} of {len(given)}, {why}",
        evidence=(f"prompt {first.key}: {length} tokens, and the engine says that the longest length is reached",),
        remedy=(
            "start the engine with a longer context (vllm serve --max-model-len, sglang --context-length)",
            "look for a limit of new tokens in generation_config.json (max_new_tokens) and in proxies",
            "or let the trainer ask for fewer tokens",
        ),
    )


def _length(answer: Answer) -> int | None:
    return len(answer.ids) if answer.ids is not None else answer.count
