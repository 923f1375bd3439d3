"""Frames that a terminal broke in the middle of a word, at its width, in one line again.

``#7 ... from /opt/ra`` / ``y/_raylet.so``, ``    f (/opt/lib/torch/distri`` / ``buted/distributed_c10d.py:2709)``,
``  File "/opt/lib/tor`` / ``ch/a.py", line 3 in f``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_GDB_FRAME = re.compile(r"#\d{1,4} {1,4}0x[0-9a-f]{6,16} in \S")
_GDB_LIBRARY = re.compile(r" from (?P<path>/\S{0,400})$")
_NARROWEST = 40
"""Columns that a terminal has at least."""
_OPEN = re.compile(r"[\s>|│]{0,40}[\w.<>]{1,80} \([^()\s]{1,400}$|[\s>|│]{0,40}File \"[^\"\n]{1,400}(?:\", line \d{1,7})?$")
_REST = re.compile(r"[^\s()]{0,400}\)\s{0,8}$|[^\s\"]{0,400}\", line \d{1,7},? in \S{1,200}\s{0,8}$|\d{0,7},? in \S{1,200}\s{0,8}$")
_PART = re.compile(r"[^\s()\"]{1,400}$")
_CHILD = re.compile(r"Process \w{0,40}Process-\d{1,5}(?::\d{1,5}){0,4}:\s{0,8}$")
"""What multiprocessing writes over the traceback of a child."""
_MOST_PIECES = 4
MAX_CHARS = 16_000
"""Of one line; native frames have some hundreds, whole stacks on one line some thousands."""


def rejoined(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """The lines, with such frames whole again; a piece keeps the number of its first line."""
    held: list[tuple[int, str]] = []
    for number, raw in _unmixed(lines):
        if held:
            joined = "".join(piece for _, piece in held) + raw
            if _goes_on(held[0][1], raw) and len(held) < _MOST_PIECES:
                if _is_torn(joined):
                    held.append((number, raw))
                else:
                    yield held[0][0], joined
                    held = []
                continue
            yield from _apart(held)
            held = []
        if (raw.startswith("#") or "(" in raw or 'File "' in raw) and len(raw) < MAX_CHARS and _is_torn(raw):
            held.append((number, raw))
        else:
            yield number, raw
    yield from _apart(held)


def _unmixed(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """The lines without the name of a child that ended while another process wrote its traceback: the child's own one does not follow it."""
    head: tuple[int, str] | None = None
    for number, raw in lines:
        if head is not None and not raw.startswith("    "):
            yield head
        head = None
        if raw.startswith("Process ") and _CHILD.match(raw):
            head = (number, raw)
        else:
            yield number, raw
    if head is not None:
        yield head


def _apart(held: list[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """What was held in vain: gdb's pieces in one line, as gdb needs no end; others as they were."""
    if len(held) > 1 and _GDB_FRAME.match(held[0][1]):
        yield held[0][0], "".join(piece for _, piece in held)
    else:
        yield from held


def _goes_on(first: str, raw: str) -> bool:
    if first.startswith("#"):
        return bool(raw.strip()) and raw[0] not in " #(>`\t" and not raw.startswith(("Thread ", "[", "Python "))
    return _REST.match(raw) is not None or _PART.match(raw) is not None


def _is_torn(raw: str) -> bool:
    """Does a frame end in the middle of its arguments, or of the path of its file or library?"""
    if not raw.startswith("#"):
        return len(raw) >= _NARROWEST and _OPEN.match(raw) is not None
    if _GDB_FRAME.match(raw) is None:
        return False
    library = _GDB_LIBRARY.search(raw)
    if library is not None:
        return "." not in library["path"].rsplit("/", 1)[-1]
    return raw.count("(") > raw.count(")") and not raw.endswith((" ", ","))
