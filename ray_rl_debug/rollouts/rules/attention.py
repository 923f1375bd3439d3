"""RRD240 attention or its cache differs

Story
    Engine and reference compute the same for a token alone, and part where other tokens stand before it: positions (rotary scaling, another base), a
    sliding window or a mask on one side only, query and key weights. Or they agree at the first token of each answer and part behind it: then the
    key-value cache keeps less than the reference, such as a cache in fp8. Under an engine that rounds, first tokens differ too, and only the engine
    itself can say so: vLLM among its numbers, SGLang among its arguments.

Evidence
    The median differences after one single token, at the first token of the answers and behind it, each as a multiple of what rounding makes there;
    how the engine says that it keeps keys and values.

Remedy
    Compare rope_scaling, rope_theta, sliding_window and max_position_embeddings of both configurations; start the engine with --kv-cache-dtype auto.

Not this when
    The engine takes no tokens as a prompt, or rounding was not measured: then RRD228 is all that can be said. A cache in fp8, and differences
    of more than 32 times rounding: no cache makes those.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.model.report import Certainty
from ray_rl_debug.rollouts.answers import Cause, Found
from ray_rl_debug.rollouts.differences import ALARM
from ray_rl_debug.rollouts.rules import output_rows, update
from ray_rl_debug.rollouts.view import ROUNDING_TIMES, Size, View, numbers, worst

ID = "RRD240"
NAME = "attention or its cache differs"
CAUSE = Cause.ATTENTION
APART = 8.0
"""So many times the difference without context must be that with it;"""
FIRST_APART = 20.0
"""and so many times that of first tokens, of which there are as few as prompts: with 8 of them chance does so in two of ten thousand."""
ALPHA = 0.005
"""Where the engine itself says that its cache keeps less, tokens behind the first need to differ only by more than chance makes them."""
COARSE_TIMES = 32.0
"""Two bits of a number (fp8_e5m2) instead of the seven of bfloat16 round so many times as coarsely: no such cache explains more than that."""
POSITIONS = (
    "compare rope_scaling, rope_theta, sliding_window and max_position_embeddings in config.json of both sides, and what the engine was started with",
    "if they are equal, it is query and key weights, which change nothing after a single token either: load the engine anew from the reference",
)
CACHE = ("start the engine with a cache of the model's own precision: vllm serve --kv-cache-dtype auto, and compare again",)


def detect(view: View) -> Iterator[Found]:
    """Differences that need other tokens before them; silent where a missing weight update explains them."""
    told = _told(view)
    far = view.distance
    if told is None or far is None or any(next(rule.detect(view), None) is not None for rule in (update, output_rows)):
        return
    said, remedy, is_sure = told
    is_larger = view.size is Size.LARGER
    yield Found(
        id=ID,
        name=NAME,
        cause=CAUSE,
        certainty=Certainty.LIKELY if is_larger and is_sure else Certainty.POSSIBLE,
        summary=f"{said}; log-probabilities are {far.logprob_diff_mean:.2g} nats apart, the largest is at {view.name(worst(view, 1)[0])}",
        evidence=(*_measured(view), *numbers(view)),
        remedy=remedy,
        is_trouble=is_larger or far.probs_diff_mean > ALARM,
    )


def _told(view: View) -> tuple[str, tuple[str, ...], bool] | None:
    """The sentence, what to do, and whether the differences alone say so; None where they do not hang on what stands before."""
    c = view.context
    if view.size in (Size.SAME, Size.UNTOLD) or c.later is None:
        return None
    if c.first is not None and c.later >= FIRST_APART * c.first:
        return "the first token of each answer agrees, those behind it do not: the key-value cache differs, or the kernels that read it", CACHE, True
    if view.has_coarse_cache and c.later <= COARSE_TIMES:
        said = f"the engine keeps its key-value cache in {view.trial.cache_dtype}"
        if c.p_first is not None and c.p_first <= ALPHA:
            return f"{said}, and tokens behind the first of an answer differ more than first ones", CACHE, False
        if view.size is Size.LARGER:
            return f"{said}, which alone may do this: whether the weights differ too is seen only without it", CACHE, False
    if view.size is Size.LARGER and c.alone is not None and c.alone <= ROUNDING_TIMES and c.later >= APART * c.alone:
        return (
            "positions or attention differ (or query and key weights): after one token alone both sides agree, behind longer texts they do not",
            POSITIONS,
            True,
        )
    return None


def _measured(view: View) -> Iterator[str]:
    c = view.context
    parts = ((c.alone, "after one token alone"), (c.first, "at the first token of an answer"), (c.later, "behind it"))
    yield "differences as multiples of rounding: " + ", ".join(f"{times:.2g} {where}" for times, where in parts if times is not None)
