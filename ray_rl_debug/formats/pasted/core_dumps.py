"""What systemd-coredump writes of a process that ended: ``Process 812 (python3) of user 0 dumped core.``, below it the stack of each thread.

A pager cuts the lines and writes ``>`` there.
"""

from __future__ import annotations

import re

from ray_rl_debug.formats.dump import Said
from ray_rl_debug.formats.pasted.events import Event, Frames, Head
from ray_rl_debug.formats.pasted.gdb import NO_SYMBOLS

_PROCESS = re.compile(r"^\W{0,24}(?:Message: )?Process (?P<pid>\d{1,9}) \((?P<name>[^()]{1,60})\) of user \S{1,40} (?:dumped|terminated)\b.{0,80}$")
_THREAD = re.compile(r"^\s{0,80}Stack trace of thread (?P<tid>\d{1,9}):?\s{0,8}$")
_FRAME = re.compile(
    r"^\s{0,80}#(?P<number>\d{1,4}) {1,4}0x[0-9a-f]{8,16} {1,4}(?P<function>[^\s()>][^\s()]{0,400}|\S{1,400}\(\))"
    r"(?: \((?P<lib>[^\s()>]{1,200})[^()]{0,40}\)?| \(|>)>?$"
)
_ENDED = Said(kind="failed", text="dumped core")
"""Of a thread whose process the text does not name."""
INDENT = 20
"""Blanks before a line that goes on a message in a journal, at least."""


def read(text: str) -> Event | None:
    """A head or a frame of such a dump."""
    if "Process " in text and (process := _PROCESS.match(text)):
        said = Said(kind="failed", text=f"{process['name']} dumped core")
        return Head(level="process", source="gdb", pid=int(process["pid"]), title=process["name"], said=said, is_new=True)
    if "Stack trace of thread" in text and (thread := _THREAD.match(text)):
        return Head(level="thread", source="gdb", order="inner", tid=int(thread["tid"]), key=f"tid{thread['tid']}", said=_ENDED)
    if "#" in text and (frame := _FRAME.match(text)):
        function = "??" if frame["function"] == "n/a" else frame["function"]
        place = (function.rstrip(">"), frame["lib"] or NO_SYMBOLS, 0)
        return Frames(places=(place,), source="gdb", order="inner", is_certain=True, number=int(frame["number"]), native=True)
    return None


def begins(text: str) -> bool:
    """Is it the first line of such a message?"""
    return "Process " in text and _PROCESS.match(text) is not None
