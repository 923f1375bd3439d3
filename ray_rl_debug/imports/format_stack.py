"""Stacks as Python's ``traceback.format_stack`` prints them, the most recent call last, each thread below ``# Thread ID``: what Ray Train's
hang detector writes where py-spy is not there."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ray_rl_debug.formats.dump import CodePlace, Dump, DumpThread

_HEAD = re.compile(r"^# Thread (?P<id>\d+)\s*$")
_FRAME = re.compile(r'^  File "(?P<file>[^"]*)", line (?P<line>\d+), in (?P<function>.+?)\s*$')


def is_format_stack(text: str) -> bool:
    """Is there a head as this form has it?"""
    return re.search(r"^# Thread \d+\s*$", text, re.MULTILINE) is not None and '  File "' in text


def read(lines: Iterable[str]) -> list[Dump]:
    """The process in the text; the main thread is the one that begins at module level."""
    threads: list[list[CodePlace]] = []
    for line in lines:
        if _HEAD.match(line):
            threads.append([])
        elif threads and (frame := _FRAME.match(line)):
            threads[-1].append((frame["function"], frame["file"], int(frame["line"])))
    found = []
    for frames in threads:
        is_main = bool(frames) and frames[0][0] == "<module>"
        found.append(DumpThread(frames=list(reversed(frames)), name="MainThread" if is_main else None))
    return [Dump(threads=found, source="traceback")] if any(t.frames for t in found) else []
