"""What Python's faulthandler writes: threads by pthread's number, the most recent call first."""

from __future__ import annotations

import re

from ray_rl_debug.formats.dump import Said
from ray_rl_debug.formats.pasted.events import Event, Head

ABORTED = "Fatal Python error: Aborted"
"""What it writes of a program that ended itself, or that somebody ended by a signal."""
_HEAD = re.compile(
    r"(?P<current>Current thread|Thread) (?P<id>0x[0-9a-fA-F]{1,16}|\d{1,16})(?: (?:\[(?P<name>[^\]]{0,200})\]|\([^()]{0,100}\)))? "
    r"\(most recent call (?P<order>first|last)\)"
)
_START = re.compile(
    r"(?:Timeout \(\d{1,6}:\d\d:\d\d(?:\.\d{1,9})?\)!|Fatal Python error: .{0,200}|<Cannot show all threads while the GIL is disabled>)\s*$"
)


def read(text: str) -> Event | None:
    """A thread's head, or the line with which a dump begins."""
    if "most recent call" in text:
        found = _HEAD.search(text)
        if found is None:
            return None
        current = found["current"].startswith("Current")
        return Head(
            level="thread",
            source="faulthandler",
            order="inner" if found["order"] == "first" else "outer",
            key=found["id"],
            name=found["name"],
            owns_gil=True if current else None,
        )
    if ("Fatal Python error" in text or "Timeout (" in text) and (start := _START.search(text)):
        fatal = start[0].startswith("Fatal")
        return Said(kind="failed", text=start[0].strip()) if fatal else Head(level="process", source="faulthandler", is_new=True)
    return None
