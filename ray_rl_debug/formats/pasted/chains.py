"""A stack told in a sentence by the names of its functions alone: ``TP0: `all_reduce → poll → step` ``, ``EngineCore: parked in `get → wait` ``."""

from __future__ import annotations

import re

from ray_rl_debug.formats.pasted import labels
from ray_rl_debug.formats.pasted.events import Frames, Head
from ray_rl_debug.formats.pasted.orientation import is_outermost_first

_CHAIN = re.compile(r"`(?P<names>[A-Za-z_<][^`\n]{2,400}? ?(?:→|⟶|⇒|←|->|=>|<-)[^`\n]{2,1000})`")
_JOINS = re.compile(r" ?(?P<sign>→|⟶|⇒|←|->|=>|<-) ?")
_NAME = re.compile(r"(?:(?P<module>[A-Za-z_]\w{2,40}) )?(?P<function>(?:[A-Za-z_]\w{0,60}\.){0,4}(?:<module>|[A-Za-z_]\w{1,80}))(?:\(\))?$")
_MAX_CHARS = 4_000
_LEAST = 3
"""Names in a chain; of two, one is often what becomes of the other. Fewer are enough where the line says that somebody stands there."""
_CLAUSE = re.compile(
    r"\b(?P<who>(?:(?:DP|TP|PP|EP|CP)[ _-]?\d{1,4}[ _]?){1,5}|ranks? ?#?\d{1,5}(?:(?:-|–|, ?| and )\d{1,5}){0,16})\W{1,3}"
    r"(?:is |are |was |were )?(?:stalled|stuck|blocked|waits?|waiting|waited|hangs?|hung|sits?|sat|sitting|parked|stands?|stood|spins?|spinning)"
    r" (?:at|in|inside|on) (?:a |an |the )?`(?:\w{1,20}:)?(?P<name>[A-Za-z_][\w.]{2,120})(?:\(\))?`",
    re.IGNORECASE,
)
"""``rank 0 stalled in `prepare_inputs` while rank 1 waited in `nccl:_all_gather_base` ``"""
_STANDS = re.compile(
    r"\b(?:parked|stuck|blocked|waits?|waiting|sits?|sitting|hangs?|hung|stands?|idle|spin(?:s|ning)?) (?:at|in|inside|on)\W{0,3}$", re.IGNORECASE
)


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
    for clause in found if len(found) > 1 else ():
        head = labels.read(f"{clause['who']}:")
        if head is not None:
            events += [head, Frames(places=((clause["name"], "", 0),), is_whole=True, is_certain=True)]
    return tuple(events)


def frames_of(text: str) -> Frames | None:
    """The frames of a chain of names alone: ``step → all_reduce → poll``."""
    names = [_NAME.match(part.strip()) for part in re.split(_JOINS.pattern.replace("?P<sign>", "?:"), text)]
    if len(names) < 2 or not all(names):
        return None
    sign = _JOINS.search(text)
    places = tuple((name["function"], "", 0) for name in names if name is not None)
    is_turned = sign is not None and sign["sign"] in ("←", "<-")
    order = "inner" if is_outermost_first(places) is False or is_turned else "outer"
    return Frames(places=places, order=order, is_whole=True, is_certain=True)


def read(text: str) -> tuple[Head | Frames, ...]:
    """Whose stack it is, and its frames without files; empty where the line names no process before the chain."""
    if "`" not in text or len(text) > _MAX_CHARS or not any(sign in text for sign in ("→", "->", "←", "⇒", "<-", "=>", "⟶")):
        return ()
    found = _CHAIN.search(text)
    if found is None:
        return ()
    frames = frames_of(found["names"])
    before = text[: found.start()]
    if frames is None or len(frames.places) < (2 if _STANDS.search(before) else _LEAST):
        return ()
    if heads := several(before):
        return tuple(event for head in heads for event in (head, frames))
    head = labels.read(f"{before.rstrip(' `:*')}:")
    if head is None or not (head.ranks or head.label or head.pid or head.title or head.count):
        return ()
    return head, frames
