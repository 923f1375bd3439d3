"""Two rows of tokens beside each other: where they part, and in which words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher

CONTEXT = 6
"""Tokens shown before the place where two rows part."""
LONG = 4096
"""Rows longer than this are only compared up to their first difference: the full alignment takes quadratic time."""


def first_difference(one: Sequence[object], other: Sequence[object]) -> int | None:
    """The first place where two rows differ; the end of the shorter one if it is the beginning of the other; None: equal."""
    for at, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return at
    return None if len(one) == len(other) else min(len(one), len(other))


def common(one: Sequence[object], other: Sequence[object]) -> int:
    """How many tokens two rows have in common from their beginning."""
    at = first_difference(one, other)
    return len(one) if at is None else at


def agreement(one: Sequence[object], other: Sequence[object]) -> float | None:
    """The share of places with equal tokens, of the longer row's places; None for two empty rows."""
    length = max(len(one), len(other))
    return sum(a == b for a, b in zip(one, other, strict=False)) / length if length else None


def spell(token: int, pieces: Mapping[int, str]) -> str:
    """A token with its text: ``'assistant' (4711)``."""
    return f"{pieces[token]!r} ({token})" if token in pieces else f"token {token}"


def join(tokens: Sequence[int], pieces: Mapping[int, str]) -> str:
    """The text of a row of tokens, in quotes."""
    return repr("".join(pieces.get(t, f"<{t}>") for t in tokens))


def before(row: Sequence[int], at: int, pieces: Mapping[int, str]) -> str:
    """What stands before a place: ``after '…user\\n'``."""
    if at <= 0:
        return "at the beginning"
    dots = "…" if at > CONTEXT else ""
    return f"after {dots}{join(row[max(0, at - CONTEXT) : at], pieces)}"


def changes(ours: Sequence[int], theirs: Sequence[int], pieces: Mapping[int, str], most: int = 3) -> list[str]:
    """What `ours` leaves out, adds or changes against `theirs`, in words, with the places."""
    if max(len(ours), len(theirs)) > LONG:
        at = common(ours, theirs)
        return [f"the rows part at token {at}, {before(theirs, at, pieces)}"]
    told = []
    for kind, a, b, c, d in SequenceMatcher(None, theirs, ours, autojunk=False).get_opcodes():
        where = "at the end" if a == len(theirs) or (b == len(theirs) and kind == "delete") else before(theirs, a, pieces)
        if kind == "delete":
            told.append(f"{where}, the engine leaves out {join(theirs[a:b][:32], pieces)}")
        elif kind == "insert":
            told.append(f"{where}, the engine adds {join(ours[c:d][:32], pieces)}")
        elif kind == "replace":
            told.append(f"{where}, the engine has {join(ours[c:d][:32], pieces)} instead of {join(theirs[a:b][:32], pieces)}")
    return told[:most]
