"""Python's tracebacks, ``traceback.format_stack``, and gdb's ``py-bt``: heads and the line with which an error ends."""

from __future__ import annotations

import re

from ray_rl_debug.formats.pasted.events import Head

_HEAD = re.compile(r"(?:\bT?raceback|Stack(?: for .{1,300}?)?) \(most recent call (?P<order>first|last)\)", re.IGNORECASE)
_NUMBERED = re.compile(
    r"^\W{0,6}(?:Thread(?:ID)?|Stack (?:for|of) thread|Python stack of thread):? ?(?P<id>0x[0-9a-f]{1,16}|\d{1,18})(?:[:,]? ?\(?"
    r"(?P<name>[\w.-]{1,80})\)?)?\W{0,6}$",
    re.IGNORECASE,
)
_ERROR = re.compile(r"^\s{0,8}(?P<name>[A-Za-z_][\w.]{0,120})(?:\[[\w., ]{0,80}\]|\(\w{1,80}\)(?=: ray::))?(?P<colon>:(?: .*)?)?$")
_NAME = 40
"""Characters."""
_INTERRUPTS = frozenset({"KeyboardInterrupt", "SystemExit", "GeneratorExit", "StopIteration", "InterruptedError"})


def read(text: str) -> Head | None:
    """The head of a traceback."""
    if "ost recent call" not in text:
        return None
    found = _HEAD.search(text)
    if found is None:
        return None
    if found["order"].lower() == "first":
        return Head(level="thread", source="gdb", order="inner")
    return Head(level="thread", source="traceback", order="outer")


def told_beside(text: str) -> str | None:
    """``[rank0] Stack (most recent call last):`` → ``[rank0]``: what the line of such a head says beside it, if it is short enough for a name."""
    found = _HEAD.search(text)
    rest = f"{text[: found.start()]} {text[found.end() :]}".strip(" :*`#-=|,") if found is not None else ""
    return rest if 0 < len(rest) <= _NAME else None


def numbered(text: str) -> Head | None:
    """``# Thread 140234``, ``# ThreadID: 140234``: how programs head the stacks of their own threads (pthread's numbers)."""
    if "hread" not in text:
        return None
    found = _NUMBERED.match(text)
    if found is None:
        return None
    return Head(level="thread", source="traceback", order=None, key=found["id"], name=found["name"])


def error_of(text: str) -> str | None:
    """The error in the line that ends a traceback: ``RuntimeError: ...``; None for a line that is no such end."""
    found = _ERROR.match(text)
    if found is None or not (found["colon"] or found["name"][:1].isupper() or "." in found["name"]):
        return None
    if found["colon"] == ":" and found["name"][-1].isdigit():
        return None  # "r1:" is whose stack comes next
    return text.strip()


def is_interrupt(error: str) -> bool:
    """Did somebody stop the program from outside? Then its stack is where it was, and no fault."""
    return error.split(":", 1)[0].rsplit(".", 1)[-1].strip() in _INTERRUPTS


def is_chain(text: str) -> bool:
    """Does the next traceback belong to the last one?"""
    lowered = text.lower()
    return "during handling of the above" in lowered or "was the direct cause of" in lowered
