"""Paddle's tracebacks of C++: ``C++ Traceback (most recent call last):``, a rule, and numbered names, the outermost first."""

from __future__ import annotations

import re

from ray_rl_debug.formats.pasted.events import Event, Frames, Head
from ray_rl_debug.formats.pasted.gdb import NO_SYMBOLS

_HEAD = re.compile(r"^\W{0,12}C\+\+ Traceback \(most recent call last\):?\W{0,4}$")
_RULE = re.compile(r"^\s{0,8}[-=]{4,120}\s{0,8}$")
_FRAME = re.compile(r"^\s{0,8}(?P<number>\d{1,3})\s{2,4}(?P<name>[A-Za-z_][^\n]{2,2000}?)\s{0,8}$")


class CppTraceback:
    """Fed with the lines of one text."""

    def __init__(self) -> None:
        self._next: int | None = None
        """Number of the frame that comes; None outside of such a traceback."""

    def feed(self, text: str) -> tuple[Event, ...]:
        """The head or the frame in this line; empty where it is neither."""
        if "C++ Traceback" in text and _HEAD.match(text):
            self._next = 0
            return (Head(level="thread", source="gdb", order="outer"),)
        if self._next is None or _RULE.match(text):
            return ()
        found = _FRAME.match(text)
        if found is None or int(found["number"]) != self._next:
            self._next = None
            return ()
        self._next += 1
        return (Frames(places=((found["name"], NO_SYMBOLS, 0),), source="gdb", order="outer", native=True, is_certain=True),)
