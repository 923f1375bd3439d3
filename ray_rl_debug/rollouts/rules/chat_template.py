"""RRD221 the prompts differ: chat template

Story
    Engine and reference turn the same messages into different tokens, though both cut plain text alike. The model answers to another prompt than the
    one it is trained on: a missing generation prompt, a second beginning-of-text token, another system message, thinking switched on at one side.

Evidence
    The first token at which the rendered prompts part, what stands before it, and what one side adds or leaves out.

Remedy
    Give both sides the same chat template: start the engine with --chat-template FILE, or render the prompt in the trainer and send token ids.

Not this when
    Plain text is cut into other tokens too: then it is the tokenizer. Only long prompts differ: then they are cut (RRD230). Whole prompts that stand
    in other rows are told as another order.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.model.report import Certainty
from ray_rl_debug.rollouts.alignment import changes
from ray_rl_debug.rollouts.answers import Cause, Found, Pair
from ray_rl_debug.rollouts.rules import cut_prompt, tokenizer
from ray_rl_debug.rollouts.view import View

ID = "RRD221"
NAME = "the prompts differ: chat template"
CAUSE = Cause.CHAT_TEMPLATE
REMEDY = (
    "give both sides one chat template: vllm serve --chat-template FILE, or sglang --chat-template FILE",
    "or render the prompt once and send token ids to the engine",
)


def detect(view: View) -> Iterator[Found]:
    """Prompts that are rendered into other tokens, although plain text is cut alike."""
    if next(tokenizer.detect(view), None) is not None or next(cut_prompt.detect(view), None) is not None:
        return
    told = _by_ids(view) or _by_count(view)
    if told is not None:
        yield told


def _by_ids(view: View) -> Found | None:
    known = [p for p in view.trial.pairs if p.engine.prompt_ids is not None and p.prompt_ids is not None]
    apart = [p for p in known if p.engine.prompt_ids != p.prompt_ids]
    if not apart:
        return None
    if (moved := _moved(known, apart)) is not None:
        return moved
    first = apart[0]
    words = changes(first.engine.prompt_ids or (), first.prompt_ids or (), view.trial.pieces)
    is_proven = bool(view.trial.probes) and view.trial.has_template
    if view.trial.probes:
        what = "the chat template differs" if view.trial.has_template else "special tokens are added differently"
    elif view.trial.has_template:
        what = "the chat template differs (or the tokenizer: the engine would not cut a plain text for us)"
    else:
        what = "the prompts were made differently (by chat template, special tokens or tokenizer)"
    return Found(
        id=ID,
        name=NAME,
        cause=CAUSE,
        certainty=Certainty.PROVEN if is_proven else Certainty.LIKELY,
        summary=f"{what}: {len(apart)} of {len(known)} prompts reach the engine as other tokens; {words[0]}",
        evidence=(*(f"prompt {first.engine.key}: {w}" for w in words), *_texts(first)),
        remedy=REMEDY,
    )


def _moved(known: list[Pair], apart: list[Pair]) -> Found | None:
    """Whole prompts that stand under other keys: the rows of one side are in another order, and no template is at fault."""
    places: dict[tuple[int, ...], str] = {}
    for pair in known:
        places.setdefault(pair.prompt_ids or (), pair.engine.key)
    found = [(p.engine.key, places[p.engine.prompt_ids]) for p in apart if p.engine.prompt_ids and p.engine.prompt_ids in places]
    if len(found) * 2 <= len(apart):
        return None
    key, other = found[0]
    return Found(
        id=ID,
        name=NAME,
        cause=CAUSE,
        certainty=Certainty.PROVEN,
        summary=f"the rows are in another order: {len(found)} of {len(known)} prompts of the engine stand in another row of the reference; "
        f"prompt {key} of the engine is prompt {other} there",
        evidence=tuple(f"prompt {a} of the engine is prompt {b} of the reference" for a, b in found[:4]),
        remedy=("make both recordings from one file of prompts, with rows in one order (or equal keys), and compare again",),
    )


def _texts(pair: Pair) -> tuple[str, ...]:
    sides = (("engine", pair.engine.prompt_text), ("reference", pair.prompt_text))
    return tuple(f"{who} reads {text[-200:]!r}" for who, text in sides if text is not None)


def _by_count(view: View) -> Found | None:
    counted = [
        (p.engine.prompt_count, len(p.prompt_ids), p.engine.key)
        for p in view.trial.pairs
        if p.engine.prompt_ids is None and p.engine.prompt_count is not None and p.prompt_ids is not None
    ]
    apart = [c for c in counted if c[0] != c[1]]
    if not apart:
        return None
    ours, theirs, key = apart[0]
    return Found(
        id=ID,
        name=NAME,
        cause=CAUSE,
        certainty=Certainty.LIKELY,
        summary=f"the prompts differ in length: the engine counts {ours} tokens for prompt {key}, the reference {theirs}; "
        f"{len(apart)} of {len(counted)} prompts differ: chat template or tokenizer",
        evidence=("the engine does not tell the tokens of the prompt, so the token cannot be named",),
        remedy=REMEDY,
    )
