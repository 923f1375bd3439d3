"""The text of ``pystack``."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

_THREAD = re.compile(r"(?:Traceback for|The frame stack for) thread (?P<tid>\d+) \((?P<name>.*?)\) \[(?P<status>[^\]]{0,200})\]")
_FRAME = re.compile(r'\((?P<kind>Python|C)\) File "(?P<file>[^"]*)", line (?P<line>\d+), in (?P<function>.+)')


class PystackThread(msgspec.Struct, frozen=True, kw_only=True):
    """One thread of pystack's answer."""

    tid: int
    name: str | None
    owns_gil: bool
    waits_for_gil: bool
    frames: tuple[tuple[str, str, int], ...]
    """(function, file, line), innermost first."""


def parse(lines: Iterable[str]) -> tuple[PystackThread, ...]:
    """Threads of pystack's text; lines of source code between the frames are passed over."""
    threads: list[tuple[re.Match[str], list[tuple[str, str, int]]]] = []
    for line in lines:
        if head := _THREAD.match(line):
            threads.append((head, []))
        elif threads and (frame := _FRAME.fullmatch(line.strip())):
            threads[-1][1].append((frame["function"], frame["file"], int(frame["line"])))
    return tuple(
        PystackThread(
            tid=int(head["tid"]),
            name=head["name"] or None,
            owns_gil="Has the GIL" in head["status"],
            waits_for_gil="Waiting for the GIL" in head["status"],
            frames=tuple(reversed(frames)),
        )
        for head, frames in threads
    )
