"""``py-spy top``, as people copy it from the terminal: functions with the share of samples in which each was met, and no stack."""

from __future__ import annotations

import re

from ray_rl_debug.formats.pasted.events import Event, Frames, Gone, Head

_HEAD = re.compile(r"^\s{0,8}Collecting samples from '(?P<title>.{1,4000})' \(python v(?P<version>\d{1,2}\.\d{1,3})")
_PID_TITLE = re.compile(r"^pid: (?P<pid>\d{1,9})$")
_ROW = re.compile(
    r"^\s{0,4}\d{1,3}\.\d{2}%\s{1,3}(?P<total>\d{1,3}\.\d{2})%\s{1,12}[\d.]{1,12}s\s{1,12}[\d.]{1,12}s\s{1,4}"
    r"(?P<function>[\w.<>]{1,200}) \((?P<file>[^()\s:]{1,300})(?::(?P<line>\d{1,7}))?\)$"
)
_SUMMARY = re.compile(r"^\s{0,4}(?:Total Samples \d|GIL: \d|%Own )")
ALWAYS = 90.0
"""Per cent of the samples: a function that was met so often was on the stack of the one place where the process stood."""


def read(text: str) -> Event | None:
    """The process, or a function that was on its stack all the time: whoever worked is listed first, its callers below."""
    if "%" in text and (row := _ROW.match(text)):
        if float(row["total"]) < ALWAYS:
            return Gone()
        place = (row["function"], row["file"], int(row["line"] or 0))
        return Frames(places=(place,), source="py-spy raw", order="inner", is_certain=True)
    if "Collecting samples" in text and (head := _HEAD.match(text)):
        pid = _PID_TITLE.match(head["title"])
        title = None if pid else head["title"]
        return Head(level="process", source="py-spy", pid=int(pid["pid"]) if pid else None, title=title, python=head["version"], is_new=True)
    return Gone() if _SUMMARY.match(text) else None
