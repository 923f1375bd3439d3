"""Two stacks as one ``diff -u``: what only the first has, what only the second has, and what both have."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_OLD = re.compile(r"^--- (?P<name>\S{1,400})")
_NEW = re.compile(r"^\+\+\+ (?P<name>\S{1,400})")
_HUNK = re.compile(r"^@@ -\d{1,9}(?:,\d{1,9})? \+\d{1,9}(?:,\d{1,9})? @@")
_SIGN = re.compile(rb"^@@ -\d{1,9}(?:,\d{1,9})? \+\d{1,9}(?:,\d{1,9})? @@", re.MULTILINE)
_MAX_BYTES = 16 << 20


def has_diff(text: bytes) -> bool:
    """Does the text hold a part of a unified diff?"""
    return b"@@ -" in text[:_MAX_BYTES] and _SIGN.search(text[:_MAX_BYTES]) is not None


def sides(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """The lines with each diff as two texts, one below the other, under the names of their files; other lines as they are."""
    held: list[tuple[int, str]] = []
    for number, line in lines:
        if held and _goes_on(held, line):
            held.append((number, line))
            continue
        if held:
            yield from _parted(held)
            held = []
        if _OLD.match(line):
            held = [(number, line)]
        else:
            yield number, line
    if held:
        yield from _parted(held)


def _goes_on(held: list[tuple[int, str]], line: str) -> bool:
    """Is this the next line of the diff that has begun?"""
    if len(held) == 1:
        return _NEW.match(line) is not None
    if len(held) == 2:
        return _HUNK.match(line) is not None
    return line[:1] in (" ", "+", "-", "\\") or _HUNK.match(line) is not None


def _parted(held: list[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    if len(held) < 4:
        yield from held
        return
    for sign, name in (("-", _OLD.match(held[0][1])), ("+", _NEW.match(held[1][1]))):
        yield held[0][0], f"==> {name['name'] if name else '?'} <=="
        for number, line in held[2:]:
            if line[:1] in (" ", sign):
                yield number, line[1:]
            elif line.startswith("@@") and number > held[2][0]:
                yield number, "..."
        yield held[-1][0], ""
