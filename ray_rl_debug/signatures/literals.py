"""Which of many plain texts may stand in a block: told by the block's words, of which there are few, not by a search for each text.

A text can only be in a block when its longest run of letters is part of a word of the block. Words repeat, so what a word may
stand for is worked out once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

MAX_WORDS = 100_000
"""Words that are remembered; random ids would else fill the memory."""
_LETTERS = re.compile(rb"[A-Za-z]+")
_ONLY_LETTERS = bytes(c if chr(c).isalpha() and c < 128 else 32 for c in range(256))


class Literals:
    """Some plain texts."""

    def __init__(self, texts: Iterable[bytes]) -> None:
        self.texts = tuple(dict.fromkeys(texts))
        self._by_run: dict[bytes, list[bytes]] = {}
        self._always: list[bytes] = []
        for text in self.texts:
            run = max(_LETTERS.findall(text), key=len, default=None)
            (self._always if run is None else self._by_run.setdefault(run, [])).append(text)
        self._shortest = min(map(len, self._by_run), default=0)
        self._of_word: dict[bytes, tuple[bytes, ...]] = {}

    def possible(self, block: bytes) -> list[bytes]:
        """Texts that may be in the block; no other is in it."""
        found: dict[bytes, None] = dict.fromkeys(self._always)
        known = self._of_word
        for word in set(block.translate(_ONLY_LETTERS).split()):
            texts = known.get(word)
            if texts is None:
                texts = self._learn(word)
            if texts:
                found.update(dict.fromkeys(texts))
        return list(found)

    def _learn(self, word: bytes) -> tuple[bytes, ...]:
        texts = () if len(word) < self._shortest else tuple(t for run, held in self._by_run.items() if run in word for t in held)
        if len(self._of_word) >= MAX_WORDS:
            self._of_word.clear()
        self._of_word[word] = texts
        return texts
