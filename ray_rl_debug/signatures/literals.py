"""Which of many plain texts may stand in a block: told by the block's words, of which there are few, not by a search for each text.

A text can only be in a block when each of its runs of letters is one of the block's words, or, at the ends of the text, part of one.
Words repeat, so which runs a word stands for is worked out once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

MAX_WORDS = 100_000
"""Words that are remembered; random ids would else fill the memory."""
SHORT = 8
"""Letters of a word whose pieces are fewer than the runs: the words of random ids are so short."""
_LETTERS = re.compile(rb"[A-Za-z]+")
_ONLY_LETTERS = bytes(c if chr(c).isalpha() and c < 128 else 32 for c in range(256))

_Run = tuple[bytes, bool]
"""Letters, and whether they are a whole word."""


class Literals:
    """Some plain texts."""

    def __init__(self, texts: Iterable[bytes]) -> None:
        self.texts = tuple(dict.fromkeys(texts))
        self._always: list[bytes] = []
        self._of_run: dict[_Run, list[tuple[bytes, frozenset[_Run]]]] = {}
        """Texts by their longest run, each with all its runs."""
        for text in self.texts:
            runs = [(m[0], m.start() > 0 and m.end() < len(text)) for m in _LETTERS.finditer(text)]
            if not runs:
                self._always.append(text)
                continue
            self._of_run.setdefault(max(runs, key=lambda r: len(r[0])), []).append((text, frozenset(runs)))
        every = {run for held in self._of_run.values() for _, runs in held for run in runs}
        self._whole = {letters: (letters, True) for letters, is_whole in every if is_whole}
        self._parts = {letters: (letters, False) for letters, is_whole in every if not is_whole}
        self._of_word: dict[bytes, tuple[_Run, ...]] = {}

    def possible(self, block: bytes) -> list[bytes]:
        """Texts that may be in the block; no other is in it."""
        got: set[_Run] = set()
        known = self._of_word
        for word in set(block.translate(_ONLY_LETTERS).split()):
            runs = known.get(word)
            if runs is None:
                runs = self._learn(word)
            if runs:
                got.update(runs)
        found = list(self._always)
        for run in got & self._of_run.keys():
            found += [text for text, runs in self._of_run[run] if runs <= got]
        return found

    def _learn(self, word: bytes) -> tuple[_Run, ...]:
        whole, parts = self._whole.get(word), self._parts
        held: Iterable[_Run]
        if len(word) <= SHORT:
            pieces = {word[a:b] for a in range(len(word)) for b in range(a + 1, len(word) + 1)}
            held = [parts[piece] for piece in pieces & parts.keys()]
        else:
            held = [run for letters, run in parts.items() if letters in word]
        runs = (*((whole,) if whole else ()), *held)
        if len(self._of_word) >= MAX_WORDS:
            self._of_word.clear()
        self._of_word[word] = runs
        return runs
