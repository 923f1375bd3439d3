"""Find the lines of a block that hold one of many plain texts, at the speed at which memory is read.

hyperscan searches all texts at once (``pip install 'ray-rl-debug[logs]'``); without it the shapes of lines tell which ones to look at.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from ray_rl_debug.logs.newlines import count_newlines
from ray_rl_debug.logs.shapes import DIGITS, KnownShapes, Line, ShapeSearch

CROWDED_BYTES = 700
"""With a text in more than each 700th byte, looking at them one by one costs more than the shapes of all lines."""
CROWDED_BLOCKS = 30
MANY = 200
Ends = Callable[[bytes], list[int]]


class Searcher:
    """Finds lines that hold one of some texts."""

    def __init__(self, texts: Iterable[bytes], *, library: bool = True, keep: Callable[[bytes], bool] | None = None) -> None:
        """`keep`: may a line of this shape, which holds a text, be one that is looked for?"""
        chosen = without_covered(texts)
        self._ends = _by_library(chosen) if library else None
        self._by_shape = ShapeSearch(chosen, keep=keep)
        self.known = KnownShapes()
        """Of all blocks so far, of whatever file: programs write the same lines into many logs."""

    def search(self, block: bytes) -> tuple[list[Line], int]:
        """Each such line that has no known shape, in their order, and how many lines end in the block.

        Shapes without any of the texts may become known.
        """
        known = self.known
        if self._ends is None:
            return self._by_shape.search(block, known)
        if known.crowded_blocks:
            known.crowded_blocks -= 1
            return self._by_shape.search(block, known)
        ends = self._ends(block)
        if len(ends) > max(MANY, len(block) // CROWDED_BYTES):
            known.crowded_blocks = CROWDED_BLOCKS
        return _lines_at(ends, block, known)


def _lines_at(ends: list[int], block: bytes, known: KnownShapes) -> tuple[list[Line], int]:
    found: list[Line] = []
    number = counted = 0
    until, shapes = -1, known.shapes
    for at in ends:
        if at <= until:
            continue
        start = block.rfind(b"\n", 0, at) + 1
        until = block.find(b"\n", at)
        until = len(block) if until == -1 else until
        if block[start:until].translate(None, DIGITS) in shapes:
            continue
        number += count_newlines(block, counted, start)
        counted = start
        found.append((number, start, until))
    return found, number + count_newlines(block, counted, len(block))


def without_covered(texts: Iterable[bytes]) -> tuple[bytes, ...]:
    """The texts without those that hold another one of them: a line that holds them is found anyway."""
    ordered = sorted(set(texts), key=lambda t: (len(t), t))
    kept: list[bytes] = []
    for text in ordered:
        if not any(short in text for short in kept):
            kept.append(text)
    return tuple(kept)


def _by_library(texts: tuple[bytes, ...]) -> Ends | None:
    try:
        import hyperscan
    except ImportError:
        return None
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    database.compile(expressions=[re.escape(t) for t in texts], ids=list(range(len(texts))), elements=len(texts))

    def ends(block: bytes) -> list[int]:
        found: list[int] = []

        def met(_id: int, _start: int, end: int, _flags: int, _context: object) -> None:
            found.append(end - 1)

        database.scan(block, match_event_handler=met)
        found.sort()
        return found

    return ends
