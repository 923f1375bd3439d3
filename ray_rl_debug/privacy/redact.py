"""Text of foreign logs as it may leave the machine: without control characters, without what looks like a secret, bounded."""

from __future__ import annotations

import re
from typing import TypeVar

from ray_rl_debug.model.foreign_text import map_text
from ray_rl_debug.privacy.masking import MASK, is_random, mask

MAX_CHARS = 400
T = TypeVar("T")

_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_ACCOUNT = re.compile(r"(?<![\w/])(?P<name>[\w.-]{1,64}):(?!\d{1,5}@)[^\s@/:]{3,128}@(?=[\w\[(])")
"""``user:password@host`` without a scheme before it, as drivers of databases take it."""
_BLOB = re.compile(r"[A-Za-z0-9+_-]{33,}={0,2}")
_RAY_ID_DIGITS = frozenset((32, 36, 40, 48, 56))
"""Lengths of Ray's ids in hex (actor, placement group, task, object, node, worker)."""


def made_safe(facts: T) -> T:
    """Facts with every string in them fit to leave this process: the one door for what came from outside.

    Names, paths and ids stay as they are; what looks like a secret in them is masked. Lines of logs and errors go through `redact` before.
    """
    return map_text(facts, mask)


def redact(line: str, *, max_chars: int = MAX_CHARS) -> str:
    """One line, made safe to show and to send."""
    text = (_COLOUR.sub("", line) if "\x1b" in line else line).strip()[: 4 * max_chars]
    text = mask(text)
    if "@" in text:
        text = _ACCOUNT.sub(f"{MASK}@", text)
    text = _BLOB.sub(_masked_blob, text)
    if not text.isprintable():
        text = "".join(c if c.isprintable() else " " if c == "\t" else f"\\x{ord(c):02x}" for c in text)
    return text if len(text) <= max_chars else text[: max_chars - 1] + "…"


def _masked_blob(found: re.Match[str]) -> str:
    text = found[0]
    if all(c in "0123456789abcdef" for c in text):
        return text if len(text) in _RAY_ID_DIGITS else MASK
    return MASK if is_random(text) else text
