"""What Python's faulthandler writes on a signal or a fatal error: threads without names, the most recent call first, no pid."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ray_rl_debug.formats.dump import CodePlace, Dump, DumpThread

_HEAD = re.compile(r"(?P<current>Current thread|Thread) (?P<id>0x[0-9a-f]+)(?: \[(?P<name>[^\]]*)\])? \(most recent call first\):")
_FRAME = re.compile(r'^(?P<prefix>.*?)File "(?P<file>[^"]*)", line (?P<line>\d+|\?\?\?) in (?P<function>.+?)\s*$')


def read(lines: Iterable[str]) -> list[Dump]:
    """Each dump in the text: a new one begins after other text, or when a thread comes a second time."""
    dumps: list[Dump] = []
    frames: list[CodePlace] = []
    ended = True
    seen: set[str] = set()
    for line in lines:
        if head := _HEAD.search(line):
            if ended or head["id"] in seen:
                seen = set()
                dumps.append(Dump(threads=[], source="faulthandler"))
            ended = False
            seen.add(head["id"])
            frames = []
            current = head["current"].startswith("Current")
            dumps[-1].threads.append(DumpThread(frames=frames, name=head["name"], owns_gil=True if current else None))
        elif dumps and (frame := _FRAME.match(line)):
            number = frame["line"]
            frames.append((frame["function"], frame["file"], int(number) if number.isdigit() else 0))
        elif line.strip() and dumps and not line.strip().startswith("..."):
            ended = True
    for dump in dumps:
        _name_main(dump)
    return [d for d in dumps if any(t.frames for t in d.threads)]


def _name_main(dump: Dump) -> None:
    """faulthandler lists the newest thread first, so the last one is the main thread; newer Pythons write the names themselves."""
    if dump.threads and dump.threads[-1].name is None and dump.threads[-1].frames and dump.threads[-1].frames[-1][0] == "<module>":
        dump.threads[-1].name = "MainThread"
