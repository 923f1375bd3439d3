"""Who is whose child in a listing that draws its tree: ``ps f``, ``ps -ejH --forest``, with ``\\_`` before each child."""

from __future__ import annotations

import re

_TOP = re.compile(r"^\s{0,20}(?P<pid>\d{1,9}) {1,4}(?P<title>[^\s\d|\\].{0,400})$")
"""The first process of a tree: it has no branch of its own."""
_SIGN = "\\_ "


class Tree:
    """Branches as they come, line by line; a blank line ends the tree."""

    def __init__(self) -> None:
        self._branch: list[tuple[int, int]] = []
        """Column and process id of those that may have children yet."""
        self._above: tuple[int, int, str] | None = None
        """The last line that may be the first of a tree: its number, process id and title."""

    def note(self, text: str, number: int) -> None:
        """Any line, before it is read as a row."""
        found = _TOP.match(text) if _SIGN not in text and len(text) < 500 else None
        if found is not None:
            self._above = (number, int(found["pid"]), found["title"].strip())

    def top(self, text: str, number: int) -> tuple[int, str] | None:
        """Process id and title of the line above, where it is the parent of this first branch."""
        if self._branch or _SIGN not in text or self._above is None or self._above[0] != number - 1:
            return None
        _, pid, title = self._above
        self._branch = [(-1, pid)]
        return pid, title

    def parent(self, text: str, pid: int) -> int | None:
        """The parent of the process in this line; None where the listing does not draw it."""
        column = text.find(_SIGN)
        while self._branch and self._branch[-1][0] >= column:
            self._branch.pop()
        parent = self._branch[-1][1] if self._branch and column >= 0 else None
        self._branch.append((column, pid))
        return parent

    def end(self) -> None:
        """The listing is over."""
        self._branch, self._above = [], None
