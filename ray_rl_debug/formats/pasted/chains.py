"""A stack told in a sentence by the names of its functions alone: ``TP0: `all_reduce → poll → step` ``, ``EngineCore: parked in `get → wait` ``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ray_rl_debug.formats.pasted import joined, labels, prose_places, said
from ray_rl_debug.formats.pasted.events import Frames, Head
from ray_rl_debug.formats.pasted.prose_words import STANDING

_CHAIN = re.compile(r"`(?P<names>[A-Za-z_<][^`\n]{2,400}? ?(?:→|⟶|⇒|←|->|=>|<-)[^`\n]{2,1000})`")
_MAX_CHARS = 4_000
_LEAST = 3
"""Names in a chain; of two, one is often what becomes of the other. Fewer are enough where the line says that somebody stands there."""
_CLAUSE = re.compile(
    r"\b(?P<who>(?:(?:DP|TP|PP|EP|CP)[ _-]?\d{1,4}[ _]?){1,5}|ranks? ?#?\d{1,5}(?:(?:-|–|, ?| and )\d{1,5}){0,16})\W{1,3}"
    r"(?:is |are |was |were )?(?:" + STANDING + r")"
    r" (?:at|in|inside|on) (?:a |an |the )?`(?:\w{1,20}:)?(?P<name>[A-Za-z_][\w.]{2,120})(?:\(\))?`",
    re.IGNORECASE,
)
"""``rank 0 stalled in `prepare_inputs` while rank 1 waited in `nccl:_all_gather_base` ``"""
_STANDS = re.compile(r"\b(?:" + STANDING + r") (?:at|in|inside|on)\W{0,3}$", re.IGNORECASE)


_CUE = re.compile(r"\b(?:stacks?|backtraces?|call chains?|hung|hangs|hanging|stuck|blocked|parked|wedged)\b", re.IGNORECASE)
_ARROW = re.compile(r"(?:→|⟶|⇒|←|->|=>|<-) ")
_LEAST_CODE = 2
"""Such names in a chain."""
_LEAD = re.compile(r"[^:`]{0,80}(?:`[^`]{2,80}`[^:`]{0,40}){2,16}:\s")
"""What stands before the colon of an entry of a list, where it names several things."""
_PARTS = re.compile(
    r"`((?:VLLM|ray|sglang)::[\w:.]{2,80}|Worker_[A-Z]{2}\d{1,4}(?:_[A-Z]{2}\d{1,4}){0,3}|EngineCore(?:_DP\d{1,4})?"
    r"|(?:DP|TP|PP|EP|CP)\d{1,4}|rank ?\d{1,5})`"
)


def several(text: str) -> list[Head]:
    """The processes that an entry of a list names before its colon: *Both workers (`Worker_TP0`, `Worker_TP1`): ...*; empty for fewer than two."""
    lead = _LEAD.match(text) if text.count("`") > 3 else None
    names = dict.fromkeys(_PARTS.findall(lead[0])) if lead is not None else ()
    heads = [head for name in names if (head := labels.read(f"{name}:")) is not None]
    return heads if len(heads) > 1 else []


def clauses(text: str) -> tuple[Head | Frames, ...]:
    """Where several processes stand, as one sentence tells it; empty for a sentence about one, which may say anything."""
    if text.count("`") < 4 or len(text) > _MAX_CHARS:
        return ()
    found = [c for c in _CLAUSE.finditer(text) if not c["name"].endswith((".py", ".so", ".cc", ".cpp"))]
    events: list[Head | Frames] = []
    ends = [*(clause.start() for clause in found[1:]), len(text)]
    for clause, end in zip(found, ends, strict=True) if len(found) > 1 else ():
        head = labels.read(f"{clause['who']}:")
        if head is not None:
            told = prose_places.read(text[text.rfind("`", 0, clause.start("name")) : end])
            alone = (clause["name"], "", 0)
            events += [head, Frames(places=tuple(told) if told and told[0][0] == alone[0] else (alone,), is_whole=True, is_certain=True)]
    return tuple(events)


def fenced(lines: Iterable[str]) -> Iterator[tuple[int, Head | None, Frames]]:
    """Chains in a block of code of their own, below a sentence that says that they are stacks: the line, who is meant, the frames."""
    above, held = "", list[tuple[int, str]]()
    in_fence = was_stack = False
    for number, raw in enumerate(lines, 1):
        text = raw[:_MAX_CHARS].lstrip(" >").rstrip()
        if text.startswith(("```", "~~~")):
            in_fence = not in_fence
            if not in_fence:
                found = [(at, frames) for at, told in held if (frames := joined.names(told, least=_LEAST, code=_LEAST_CODE)) is not None]
                is_stack = len(found) == len(held) > 0 and (was_stack or (_CUE.search(above) is not None and not said.NO_STACK.search(above)))
                was_stack = is_stack
                for at, frames in found if is_stack else ():
                    yield at, labels.read(above), frames
            held, above = [], above if in_fence else ""
        elif in_fence and held and _ARROW.match(text):
            held[-1] = (held[-1][0], f"{held[-1][1]} {text}"[:_MAX_CHARS])
        elif in_fence and text:
            held.append((number, text))
        elif text:
            above = text


def read(text: str) -> tuple[Head | Frames, ...]:
    """Whose stack it is, and its frames without files; empty where the line names no process before the chain."""
    if "`" not in text or len(text) > _MAX_CHARS or not any(sign in text for sign in ("→", "->", "←", "⇒", "<-", "=>", "⟶")):
        return ()
    found = _CHAIN.search(text)
    if found is None:
        return ()
    frames = joined.names(found["names"])
    before = text[: found.start()]
    if frames is None or len(frames.places) < (2 if _STANDS.search(before) else _LEAST):
        return ()
    if heads := several(before):
        return tuple(event for head in heads for event in (head, frames))
    head = labels.owner(before.rstrip(" `:*"))
    if head is None or not (head.ranks or head.label or head.pid or head.title or head.count):
        return ()
    return head, frames
