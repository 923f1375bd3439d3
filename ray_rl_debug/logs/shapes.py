"""Lines that hold one of many plain texts, found by the shapes of lines: what is left of a line without its digits.

A log has millions of lines and few shapes. A block is stripped, split and compared with the shapes that are known to hold nothing; all three are
single calls, whatever the block holds. Only new shapes are searched, and only lines of a shape with a text are looked at.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator

from ray_rl_debug.signatures.literals import Literals

PIECE_BYTES = 64 << 10
"""Looked at in one go: some hundred lines, and small enough for the processor's own memory."""
MAX_KNOWN_BYTES = 16 << 20
"""Shapes that are remembered; where all lines differ they would else fill the memory."""
MAX_ADDED_BYTES = 4 * PIECE_BYTES
SET_BYTES = 100
"""That a short text takes in a set beside its letters."""
DIGITS = b"0123456789"
_OF_TEXT = dict.fromkeys(DIGITS)
MIN_LETTERS = 6
"""Of a text with digits, to be looked for anywhere in a shape. A shorter one, like ``E19999``, is a word of its own: else each ``E`` would do."""


def without_digits(text: str) -> str:
    """What lines share that differ in their numbers alone."""
    return text.translate(_OF_TEXT)


Line = tuple[int, int, int]
"""Its number in the block, from 0, where it begins, and where it ends, before its ``\\n``."""


class KnownShapes:
    """Shapes that have nothing to tell."""

    def __init__(self) -> None:
        self.shapes: set[bytes] = set()
        self.crowded_blocks = 0
        """Blocks to come that are better searched by their shapes: the last one had many lines with a text and nothing to tell."""
        self._bytes = 0

    def add(self, shapes: Collection[bytes], size: int) -> None:
        """Remember these, which together have so many bytes; all are forgotten when there are too many."""
        if size > MAX_ADDED_BYTES:
            return  # one line of megabytes, which will not come again
        self.shapes.update(shapes)
        self._bytes += size + SET_BYTES * len(shapes)
        if self._bytes > MAX_KNOWN_BYTES:
            self.shapes.clear()
            self._bytes = 0


class ShapeSearch:
    """Finds lines with one of some texts."""

    def __init__(self, texts: Iterable[bytes], *, keep: Callable[[bytes], bool] | None = None) -> None:
        """`keep`: may a line of this shape, which holds a text, be one that is looked for?"""
        self._keep = keep
        self._originals: dict[bytes, tuple[bytes, ...]] = {}
        """Texts by what is left of them without digits."""
        self._codes: list[bytes] = []
        for text in texts:
            left = text.translate(None, DIGITS)
            if left == text or len(left) >= MIN_LETTERS:
                self._originals[left] = (*self._originals.get(left, ()), text)
            else:
                self._codes.append(text)
        self._literals = Literals(self._originals)
        letters = b"|".join(sorted({re.escape(code.translate(None, DIGITS)) for code in self._codes}))
        # Without a look behind it begins with a plain letter, for which the search is much faster.
        self._code_ends = re.compile(rb"(?:" + letters + rb")(?![A-Za-z])") if self._codes else None
        self._code_words = re.compile(rb"(?<![A-Za-z])(?:" + letters + rb")(?![A-Za-z])")

    def search(self, block: bytes, known: KnownShapes) -> tuple[list[Line], int]:
        """Lines with a text and of no known shape, and how many lines end in the block. Shapes without a text become known."""
        found: list[Line] = []
        lines = start = 0
        while start < len(block):
            stop = block.rfind(b"\n", start, start + PIECE_BYTES) + 1
            stop = stop or (block.find(b"\n", start) + 1) or len(block)
            piece = block[start:stop]
            shapes = piece.translate(None, DIGITS).split(b"\n")
            new = set(shapes) - known.shapes
            told = self._told(new, known) if new else {}
            if told:
                found += ((lines + i, start + a, start + b) for i, a, b in _chosen(piece, shapes, told))
            lines += len(shapes) - 1
            start = stop
        return found, lines

    def _told(self, new: set[bytes], known: KnownShapes) -> dict[bytes, list[bytes]]:
        """Those of the shapes with a text, each with its texts; the others become known."""
        told: dict[bytes, list[bytes]] = {}
        joined = b"\n".join(new)
        for left in self._literals.possible(joined):
            at = joined.find(left)
            while at != -1:
                end = joined.find(b"\n", at)
                end = len(joined) if end == -1 else end
                shape = joined[joined.rfind(b"\n", 0, at) + 1 : end]
                told.setdefault(shape, []).extend(self._originals[left])
                at = joined.find(left, end)
        if self._code_ends is not None and self._code_ends.search(joined):
            for shape in new:
                if self._code_words.search(shape):
                    told.setdefault(shape, []).extend(self._codes)
        if self._keep is not None:
            told = {shape: texts for shape, texts in told.items() if self._keep(shape)}
        known.add(new - told.keys(), len(joined))
        return told


def _chosen(piece: bytes, shapes: list[bytes], told: dict[bytes, list[bytes]]) -> Iterator[Line]:
    numbers = [i for i, shape in enumerate(shapes) if shape in told]
    rows = piece.split(b"\n")
    sizes = list(map(len, rows))
    last = at = 0
    for number in numbers:
        at += sum(sizes[last:number]) + number - last
        last = number
        # A text may stand in a shape although digits part it in the line.
        if any(text in rows[number] for text in told[shapes[number]]):
            yield number, at, at + sizes[number]
