"""``pystack remote`` and ``pystack core``: threads with states, frames outermost first."""

from __future__ import annotations

import re

from ray_rl_debug.formats.pasted.events import Frames, Head

_HEAD = re.compile(r"(?:Traceback for|The frame stack for) thread (?P<tid>\d{1,9})(?: \((?P<name>[^()]{0,200})\))?(?: \[(?P<status>[^\]]{0,200})\])?")
_FRAME = re.compile(
    r"^\s*\((?P<kind>Python|C)\) File [\"'](?P<file>[^\"']{0,400})[\"'], line (?P<line>\d{1,9}), in (?P<function>.{1,4000}?)"
    r"(?: \((?P<lib>/[^()]{0,400})\)?)?$"
)


def read(text: str) -> Head | Frames | None:
    """A head or a frame of pystack's."""
    if "thread" in text and (head := _HEAD.search(text)):
        status = head["status"] or ""
        return Head(
            level="thread",
            source="pystack",
            order="outer",
            tid=int(head["tid"]),
            key=head["tid"],
            name=head["name"] or None,
            owns_gil="Has the GIL" in status if status else None,
            waits_for_gil="Waiting for the GIL" in status if status else None,
        )
    if "File" in text and (frame := _FRAME.match(text.rstrip())):
        file = frame["lib"] if frame["lib"] and frame["file"].strip("?") == "" else frame["file"]
        place = (frame["function"], file, int(frame["line"]))
        return Frames(places=(place,), source="pystack", order="outer", is_certain=True, native=frame["kind"] == "C")
    return None
