"""What a line says was not done, and a later line of its writer says is: ``worker 7 has not registered``, ``worker 7 registered``."""

from __future__ import annotations

import re

_NOT_DONE = re.compile(
    r"\b(?:has|have|had|was|were|is|are) not (?:yet )?(?:been )?(?P<done>[a-z]{3,20}ed)\b"
    r"|\b(?:[Ff]ailed to|[Uu]nable to|[Cc]ould not|[Cc]annot) (?P<verb>[a-z]{3,20})\b"
)
_NAME = re.compile(r"(?<![\w./:-])(?=[\w./:-]*\d)[\w./:-]{2,}\w|\d{2,}")
"""Of what both lines speak: a number, an address, a file or a name with a digit.

It begins where the word does: else a long word without a digit would be read again from each of its letters."""
_DENIES = re.compile(r"(?i:\b(?:not|never|no|failed|unable|cannot|could)\b)")


def is_done_behind(text: str, after: str) -> bool:
    """Does a later line say of the same thing that what `text` misses was done?"""
    found = _NOT_DONE.search(text)
    if found is None or _DENIES.search(after) is not None:
        return False
    done = found["done"] or _past(found["verb"])
    names = set(_NAME.findall(text))
    return re.search(rf"\b(?i:(?:re)?{done})\b", after) is not None and not names.isdisjoint(_NAME.findall(after))


def _past(verb: str) -> str:
    """``connect`` -> ``connected``, ``acquire`` -> ``acquired``, ``retry`` -> ``retried``."""
    if verb.endswith("e"):
        return f"{verb}d"
    return f"{verb[:-1]}ied" if verb.endswith("y") and verb[-2] not in "aeiou" else f"{verb}ed"
