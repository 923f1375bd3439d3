"""The text of ``pystack remote`` and ``pystack core``; pids are only in the file's name, if anywhere."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ray_rl_debug.formats import pystack
from ray_rl_debug.formats.dump import Dump, DumpThread

_HEAD = re.compile(r"(?:Traceback for|The frame stack for) thread \d+ \(")


def is_pystack(text: str) -> bool:
    """Is there a head as pystack writes it?"""
    return _HEAD.search(text) is not None


def read(lines: Iterable[str]) -> list[Dump]:
    """The process in the text; its pid is that of the thread whose number is the smallest, the main thread's on Linux."""
    threads = pystack.parse(lines)
    if not threads:
        return []
    pid = min(t.tid for t in threads)
    return [
        Dump(
            pid=pid,
            source="pystack",
            threads=[
                DumpThread(
                    frames=t.frames,
                    tid=t.tid,
                    name="MainThread" if t.tid == pid else t.name,
                    owns_gil=t.owns_gil,
                )
                for t in threads
            ],
            native=any(".so" in file for t in threads for _, file, _ in t.frames),
        )
    ]
