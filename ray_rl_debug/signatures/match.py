"""Find known errors in lines and in large blocks of a log.

A block is first searched for the plain texts of those signatures that its words allow; only the lines around a hit meet a regular expression.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec

from ray_rl_debug.signatures import EFFECTS, Signature, load
from ray_rl_debug.signatures.literals import Literals

MAX_LINE_CHARS = 4000
"""Longer lines are cut to this much around the plain text: a progress bar or a printed tensor may be one line of megabytes."""

_COUNTS = re.compile(r"\{\d+(?:,\d*)?\}")
_DIGIT = re.compile(r"\d")
_COLOUR = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a block that matched."""

    signature: Signature
    line: int
    """Counted from 0 at the start of the block."""
    text: str
    at: int = 0
    """Where in the text the pattern matched."""


class Matcher:
    """Matches lines against signatures; the most severe signature of a line wins, then the more exact one, then the lowest id."""

    def __init__(self, signatures: Iterable[Signature] | None = None) -> None:
        chosen = load() if signatures is None else tuple(signatures)
        ordered = sorted(chosen, key=lambda s: (EFFECTS.index(s.effect), len(s.id), s.id))
        self._signatures = tuple(ordered)
        self._of_literal: dict[bytes, list[int]] = {}
        """Places in the order of severity."""
        for place, signature in enumerate(ordered):
            for literal in signature.literals:
                self._of_literal.setdefault(literal.encode(), []).append(place)
        self._literals = Literals(self._of_literal)
        self._patterns: dict[int, re.Pattern[str]] = {}
        """Compiled when first needed: most errors never come."""
        with_digits = {i for i, s in enumerate(ordered) if _DIGIT.search(_COUNTS.sub("", s.pattern))}
        self._with_digits = Literals(text for text, places in self._of_literal.items() if with_digits.intersection(places))

    @property
    def literals(self) -> tuple[bytes, ...]:
        """Plain texts, one of which every matching line holds."""
        return self._literals.texts

    def depends_on_digits(self, line: bytes) -> bool:
        """May another line, which differs from this one in its digits only, match although this one does not?"""
        return any(text in line for text in self._with_digits.possible(line))

    def match_line(self, line: str | bytes) -> Signature | None:
        """The signature of one line, with or without colours and Ray's ``(Actor pid=1)`` prefix."""
        hits = [hit.signature for hit in self.match_block(line.encode("utf-8", "replace") if isinstance(line, str) else line)]
        return min(hits, key=lambda s: (EFFECTS.index(s.effect), len(s.id), s.id), default=None)

    def match_block(self, block: bytes) -> Iterator[Hit]:
        """Matching lines of a block of whole lines, in their order."""
        if b"\x1b" in block:
            block = _COLOUR.sub(b"", block)
        spans: dict[tuple[int, int], None] = {}
        for literal in self._literals.possible(block):
            at = block.find(literal)
            while at != -1:
                start, end = _line_around(block, at)
                spans[_bounded(start, end, at)] = None
                at = block.find(literal, end)
        line, counted = 0, 0
        for start, end in sorted(spans):
            found = self._find(block[start:end])
            if found is not None:
                line += block.count(b"\n", counted, start)
                counted = start
                yield Hit(signature=found[0], line=line, text=block[start:end].decode("utf-8", "replace"), at=found[1])

    def _find(self, raw: bytes) -> tuple[Signature, int] | None:
        best: tuple[Signature, re.Match[str]] | None = None
        text = None
        for place in sorted({p for literal in self._literals.possible(raw) if literal in raw for p in self._of_literal[literal]}):
            one = self._signatures[place]
            if best is not None and one.effect != best[0].effect:
                break
            text = raw.decode("utf-8", "replace") if text is None else text
            pattern = self._patterns.get(place)
            if pattern is None:
                pattern = self._patterns[place] = re.compile(one.pattern)
            match = pattern.search(text)
            if match is not None and (best is None or _is_more_exact(one, match, *best)):
                best = one, match
        return None if best is None else (best[0], best[1].start())


def _is_more_exact(one: Signature, match: re.Match[str], other: Signature, others: re.Match[str]) -> bool:
    """Does a signature tell more of the same line? A reason stands behind what it brought about, and longer plain text is rarer."""
    return match.start() >= others.start() and _plain_chars(one, match[0]) > _plain_chars(other, others[0])


def _plain_chars(one: Signature, text: str) -> int:
    """Of its longest plain text in what matched."""
    return max((len(literal) for literal in one.literals if literal in text), default=0)


def _line_around(block: bytes, at: int) -> tuple[int, int]:
    start = block.rfind(b"\n", 0, at) + 1
    end = block.find(b"\n", at)
    end = len(block) if end == -1 else end
    # Progress bars end their lines with a carriage return only.
    cut = block.find(b"\r", at, end)
    return max(start, block.rfind(b"\r", start, at) + 1), end if cut == -1 else cut


def _bounded(start: int, end: int, at: int) -> tuple[int, int]:
    if end - start <= MAX_LINE_CHARS:
        return start, end
    return max(start, at - MAX_LINE_CHARS // 2), min(end, at + MAX_LINE_CHARS // 2)
