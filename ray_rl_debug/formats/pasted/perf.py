"""``perf script``: a head with the thread and its process, frames of addresses, symbols and files, innermost first."""

from __future__ import annotations

import re

from ray_rl_debug.formats.pasted.events import Frames, Head

_HEAD = re.compile(
    r"^(?P<name>\S.{0,40}?) {1,12}(?P<pid>\d{1,9})/(?P<tid>\d{1,9})(?: \[\d{1,4}\])? {1,4}\d{1,12}\.\d{6,9}: {1,12}\d{0,12} {0,12}[\w:-]{1,60}:? *$"
)
_FRAME = re.compile(r"^ {4,24}[0-9a-f]{6,16} (?P<function>\S.{0,4000}?)(?:\+0x[0-9a-f]{1,8})? \((?P<lib>[^()]{1,400})\)$")


def read(text: str) -> Head | Frames | None:
    """A head or a frame of perf's."""
    if text.startswith(" ") and text.endswith(")") and (frame := _FRAME.match(text)):
        place = (frame["function"], frame["lib"], 0)
        return Frames(places=(place,), source="gdb", order="inner", is_certain=True, native=True)
    if "/" in text and ": " in text and (head := _HEAD.match(text)):
        return Head(
            level="thread", source="gdb", order="inner", pid=int(head["pid"]), tid=int(head["tid"]), name=head["name"], key=f"perf{head['tid']}"
        )
    return None
