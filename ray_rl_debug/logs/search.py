"""Find the lines of a block that hold one of many plain texts, at the speed at which memory is read.

hyperscan searches all texts at once (``pip install 'ray-rl-debug[logs]'``); without it the words of a block tell which texts to look for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from ray_rl_debug.signatures.literals import Literals

PIECE_BYTES = 256 << 10
Ends = Callable[[bytes], Iterable[int]]


class Searcher:
    """Finds lines that hold one of some texts."""

    def __init__(self, texts: Iterable[bytes], *, library: bool = True) -> None:
        self._texts = without_covered(texts)
        self._ends = (_by_library(self._texts) if library else None) or _by_words(self._texts)

    def lines(self, block: bytes) -> Iterator[tuple[int, int]]:
        """Start and end of each such line, in their order; the end is before the line's ``\\n``."""
        until = -1
        for at in self._ends(block):
            if at <= until:
                continue
            start = block.rfind(b"\n", 0, at) + 1
            end = block.find(b"\n", at)
            until = len(block) if end == -1 else end
            yield start, until


def without_covered(texts: Iterable[bytes]) -> tuple[bytes, ...]:
    """The texts without those that hold another one of them: a line that holds them is found anyway."""
    ordered = sorted(set(texts), key=lambda t: (len(t), t))
    kept: list[bytes] = []
    for text in ordered:
        if not any(short in text for short in kept):
            kept.append(text)
    return tuple(kept)


def _by_words(texts: tuple[bytes, ...]) -> Ends:
    literals = Literals(texts)

    def ends(block: bytes) -> list[int]:
        found: set[int] = set()
        start = 0
        while start < len(block):
            # Small pieces have few words, and most texts are in none of them.
            stop = block.rfind(b"\n", start, start + PIECE_BYTES) + 1
            stop = stop or (block.find(b"\n", start) + 1) or len(block)
            for text in literals.possible(block[start:stop]):
                at = block.find(text, start, stop)
                while at != -1:
                    found.add(at)
                    line_end = block.find(b"\n", at, stop)
                    at = block.find(text, line_end, stop) if line_end != -1 else -1
            start = stop
        return sorted(found)

    return ends


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
