"""Tracebacks that rich draws: a box with the outermost call first, ``│ /w/train.py:61 in main │`` and source code between.

A long path is broken at the width of the box. Boxes inside the box hold values of variables, which are the user's and never read.
"""

from __future__ import annotations

import re

_OPENS = re.compile(r"^\s{0,8}(?:╭|┌|\+)[─-].{0,200}Traceback \(most recent call last\).{0,200}$")
_CLOSES = re.compile(r"^\s{0,8}(?:╰|└|\+)[─-]{2}")
_ROW = re.compile(r"^\s{0,8}[│|](?P<rest>.*)$")
_WHOLE = re.compile(r"^.{1,400}:\d{1,7} in [^\s:]{1,200}$")
_STARTS = re.compile(r"^(?:~|/|\.{1,2}/|[A-Za-z]:\\|<|[\w.-]{1,80}(?:/|\.py:))")
_PLACE_IN = re.compile(r"(?:~|/|\.{1,2}/)\S{3,300}\.py:\d{1,6} in(?: [\w<>.]{1,80})?$")
_MAX_CHARS = 1_000
HEAD = "Traceback (most recent call last):"


class Box:
    """The box that is open, and the path of a frame that goes on in its next row."""

    def __init__(self) -> None:
        self._is_open = False
        self._begun = ""

    def plain(self, text: str) -> str | None:
        """The line as Python would have written it; None for a row that tells no frame, or not yet all of one."""
        if not self._is_open:
            if "Traceback" not in text or _OPENS.match(text) is None:
                return text
            self._is_open, self._begun = True, ""
            return HEAD
        inner = _inner(text)
        if inner is None:
            self._is_open = False
            return None if _CLOSES.match(text) else text
        return self._frame(inner)

    def begins_inside(self, text: str) -> bool:
        """Is it a row with a frame of a box whose upper edge nobody copied? Then the box is open."""
        inner = _inner(text) if not self._is_open and text.lstrip()[:1] in ("│", "|") else None
        if inner is None or _PLACE_IN.match(inner.strip()) is None:
            return False
        self._is_open, self._begun = True, ""
        return True

    def _frame(self, inner: str) -> str | None:
        stripped = inner.strip()
        if not stripped or stripped[0] in "│|╭╰┌└❱" or (inner[:1] == " " and not self._begun):
            self._begun = ""
            return None
        told = self._begun + inner
        if _WHOLE.match(told.strip()):
            self._begun = ""
            return f"  {told.strip()}"
        # A row that is full was broken inside of a word, one with blanks at its end between two.
        self._begun = told if (self._begun or _STARTS.match(inner)) and len(told) < _MAX_CHARS else ""
        self._begun = f"{self._begun.rstrip()} " if self._begun.endswith((" ", " in")) else self._begun
        return None


def _inner(text: str) -> str | None:
    """What stands between the walls of a row; None for a line that is no row. The wall to the right may be missing."""
    row = _ROW.match(text)
    rest = row["rest"].rstrip() if row is not None else "?"
    if rest and rest[0] != " ":
        return None
    return rest[1:-1].removesuffix(" ") if rest.endswith(("│", "|")) else rest[1:]
