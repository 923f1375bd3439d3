"""Tables with one stack in each row, whose columns are parted by commas, tabs or blanks: ``rank,host,pid,stack``."""

from __future__ import annotations

import csv
import re

_OF_STACKS = (
    "stack",
    "frame",
    "top frame",
    "where",
    "location",
    "callstack",
    "call stack",
    "stuck at",
    "stuck in",
    "backtrace",
    "python stack",
    "caller",
    "called from",
    "called by",
)
OF_NAMES = {
    "rank": "rank",
    "ranks": "ranks",
    "global rank": "rank",
    "global_rank": "rank",
    "pid": "pid",
    "process": "pid",
    "node": "node",
    "host": "node",
    "hostname": "node",
    "pod": "node",
    "进程": "pid",
    "卡": "rank",
    "节点": "node",
}
"""Titles of columns that say whose a row is, and the word for what stands in them."""
_OF_PLACES = (("function", "func", "name", "method"), ("file", "filename", "path"), ("line", "lineno", "line number"))
_BLANKS = re.compile(r" {2,}|\t")
_MAX_CHARS = 8_000
_MAX_HEADING = 300


class PlainTable:
    """The heading that was met last, for the rows below it."""

    def __init__(self) -> None:
        self._titles: list[str] = []
        self._sign = ""
        self._places: tuple[int, int, int] | None = None
        """Where function, file and line stand, each in a column of its own."""
        self._names: list[str] = []
        """The titles of the other columns."""

    def end(self) -> None:
        """No row comes any more."""
        self._titles = []

    def as_markdown(self, text: str) -> str:
        """A row as one of Markdown's, with the title of the column before a number: ``| rank 3 | pid 81 | f@a.py:1 |``; else the line itself."""
        stripped = text.strip()
        if not stripped or stripped[0] == "|" or len(stripped) > _MAX_CHARS:
            return text
        if not self._titles:
            self._begin(stripped)
            return text
        cells = _cells(stripped, self._sign)
        at_end = len(self._titles) - 1
        if len(cells) < len(self._titles):
            self._titles = []
            return text
        cells = [*cells[:at_end], (self._sign if self._sign == "," else "  ").join(cells[at_end:])]
        if "|" in stripped or not cells[-1]:
            return text
        if self._places is not None:
            function, file, line = (cells[at] for at in self._places)
            rest = [c for at, c in enumerate(cells) if at not in self._places]
            named = [f"{OF_NAMES.get(t) or ''} {c}".strip() if c.isdecimal() else c for t, c in zip(self._names, rest, strict=False)]
            return f"| {' | '.join([*named, f'{function} ({file}:{line})'])} |"
        named = [f"{OF_NAMES.get(t) or ''} {c}".strip() if c.isdecimal() else c for t, c in zip(self._titles, cells[:-1], strict=False)]
        return f"| {' | '.join([*named, cells[-1]])} |"

    def _begin(self, heading: str) -> None:
        if (found := columns(heading)) is None:
            return
        self._titles, self._sign = found
        at = [next((i for i, t in enumerate(self._titles) if t in words), None) for words in _OF_PLACES]
        self._places = (at[0], at[1], at[2]) if at[0] is not None and at[1] is not None and at[2] is not None else None
        self._names = [t for i, t in enumerate(self._titles) if self._places is None or i not in self._places]


def columns(heading: str) -> tuple[list[str], str] | None:
    """The titles in a heading of such a table, and the sign between them."""
    lowered = heading.lower()
    is_of_places = all(any(word in lowered for word in words) for words in _OF_PLACES)
    if (
        len(heading) > _MAX_HEADING
        or not (is_of_places or any(word in lowered for word in _OF_STACKS))
        or not any(word in lowered for word in OF_NAMES)
    ):
        return None
    for sign in (",", "\t", "  "):
        titles = [re.sub(r" ?\(.*\)$", "", c.lower()) for c in _cells(heading.strip(), sign)]
        if (
            len(titles) > 1
            and (titles[-1] in _OF_STACKS or all(any(t in words for t in titles) for words in _OF_PLACES))
            and any(t in OF_NAMES for t in titles[:-1])
        ):
            return titles, sign
    return None


def _cells(text: str, sign: str) -> list[str]:
    if sign == ",":
        try:
            return [c.strip() for c in next(csv.reader([text]), [])]
        except csv.Error:
            return []
    return [c.strip() for c in (text.split("\t") if sign == "\t" else _BLANKS.split(text))]
