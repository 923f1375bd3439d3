"""Two panes of a terminal copied as one text: what stands left of the line between them, and then what stands right of it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

_EDGE = "│"
_EDGES = re.compile("│".encode())
_MAX_BYTES = 16 << 20
_LEAST_LEFT = 24
"""Columns that the left pane has at least: a box begins further left."""
_LEAST_LINES = 4
_TELLS = re.compile(r"^\s{0,24}(?:[\w.<>]{1,80} \([^()\s]{1,200}:\d{1,7}\)|Thread [0-9xA-Fa-f]{1,18}\b|Process \d{1,9}:|File \"|#\d{1,3} )")
"""How a stack of a tool begins, or goes on, in the right pane."""


def edge(text: bytes) -> int | None:
    """The column of the line between two panes, the right one of which holds a stack; None where the text has none."""
    if len(text) > _MAX_BYTES or not _EDGES.search(text):
        return None
    at: Counter[int] = Counter()
    telling: Counter[int] = Counter()
    for line in text.decode("utf-8", "replace").split("\n"):
        if line.count(_EDGE) != 1 or line.startswith(_EDGE):
            continue
        column = line.index(_EDGE)
        at[column] += 1
        telling[column] += _TELLS.match(line[column + 1 :]) is not None
    found = [c for c, lines in at.items() if c >= _LEAST_LEFT and lines >= _LEAST_LINES and 2 * telling[c] >= lines]
    return found[0] if len(found) == 1 else None


def apart(lines: Iterable[tuple[int, str]], column: int) -> Iterator[tuple[int, str]]:
    """The lines with each run of two panes as two texts, one below the other; other lines as they are."""
    held: list[tuple[int, str]] = []
    for number, line in lines:
        if line[column : column + 1] == _EDGE:
            yield number, line[:column].rstrip()
            held.append((number, line[column + 1 :]))
            continue
        if held:
            yield held[-1][0], ""
            yield from held
            yield held[-1][0], ""
            held = []
        yield number, line
    yield from held
