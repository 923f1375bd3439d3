"""Stacks that C++ programs print of themselves: ``@ 0x10c3aafe7 ray::Call()`` (Abseil, glog), ``lib.so(ray::Call()+0x18) [0x15bd544]`` (glibc).

A stack below ``*** SIGABRT received`` shows where a program ended, and is none of a wait: its lines have sizes or ``(unknown)`` in them.
"""

from __future__ import annotations

import re

from ray_rl_debug.formats.pasted.events import Frames
from ray_rl_debug.formats.pasted.gdb import NO_SYMBOLS

_AT = re.compile(r"^[\s|*>-]{0,12}@ {1,8}0x[0-9a-fA-F]{6,16} {1,4}(?P<function>[A-Za-z_~(][^\n]{2,4000}\)|[A-Za-z_]\w{2,120})$")
_GLIBC = re.compile(
    r"^\W{0,8}?(?:\[ {0,3}\d{1,3}\] |\[bt\] \(\d{1,3}\) |\d{1,3}[:.] {1,4})?(?P<lib>[^\s()]{1,300}\.so[\d.]{0,12})"
    r"\((?P<function>[^\n]{1,4000}?)?\+0x[0-9a-fA-F]{1,16}\) ?\[0x[0-9a-fA-F]{4,16}\]`?$"
)


def read(text: str) -> Frames | None:
    """The frame in such a line."""
    if "@ " in text and "0x" in text and (at := _AT.match(text)) and "(unknown)" not in text:
        place = (at["function"].strip(), NO_SYMBOLS, 0)
    elif "+0x" in text and text.rstrip("`").endswith("]") and (told := _GLIBC.match(text)):
        place = (told["function"] or "??", told["lib"], 0)
    else:
        return None
    return Frames(places=(place,), source="native", order="inner", is_certain=True, native=True)
