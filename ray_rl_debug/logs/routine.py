"""What a program does again and again, told by lines that are equal but for their digits: who goes on with it behind an error did not end by it."""

from __future__ import annotations

from ray_rl_debug.logs.heads import Head
from ray_rl_debug.logs.named import is_one_process
from ray_rl_debug.logs.shapes import without_digits
from ray_rl_debug.logs.spotted import Spotted
from ray_rl_debug.logs.steps import BAR, read_step
from ray_rl_debug.logs.window import Window
from ray_rl_debug.logs.words import judge

LINES_BACK = 60
BYTES_BACK = 8 << 10
AGAIN = 2
"""So often a line comes behind the error, where none like it came before."""
MIN_LETTERS = 8
"""Shorter lines, a rule or a number, are like many others."""


class Routine:
    """Lines of the writer of an error, before it and behind it."""

    def __init__(self, window: Window, one: Spotted) -> None:
        self._window, self._one = window, one
        self._before: set[str] | None = None
        self._behind: dict[str, int] = {}

    def goes_on(self, after: Head) -> bool:
        """Is the next line behind the error one of those that come again and again?"""
        shape = _shape(after.text)
        if (done := read_step(after.text)) is not None and done[1] == BAR:
            return False  # a bar is drawn once more when its program ends
        if sum(map(str.isalpha, shape)) < MIN_LETTERS:
            return False
        self._before = self._shapes_before() if self._before is None else self._before
        self._behind[shape] = self._behind.get(shape, 0) + 1
        return shape in self._before or self._behind[shape] >= AGAIN

    def _shapes_before(self) -> set[str]:
        start, writer = self._one.start, self._one.head.writer
        rows = self._window.text[max(0, start - BYTES_BACK) : start].split(b"\n")[-1 - LINES_BACK : -1]
        heads = [self._window.head(row[:400].decode("utf-8", "replace")) for row in rows]
        own = (h for h in heads if is_one_process(h.writer, writer))
        return {_shape(h.text) for h in own if judge(h.text, h.level) is None}


def _shape(text: str) -> str:
    return without_digits(text[:160])
