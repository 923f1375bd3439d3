"""pystack as a second engine: it also reads processes that py-spy cannot, and names who holds and who waits for the GIL."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from ray_rl_debug.collect.bounded import Finished, run_bounded

_THREAD = re.compile(r"(?:Traceback for|The frame stack for) thread (?P<tid>\d+) \((?P<name>.*?)\) \[(?P<status>[^\]]*)\]")
_FRAME = re.compile(r'\s*\((?P<kind>Python|C)\) File "(?P<file>[^"]*)", line (?P<line>\d+), in (?P<function>.+?)\s*')


class PystackThread(msgspec.Struct, frozen=True, kw_only=True):
    """One thread of pystack's answer."""

    tid: int
    name: str | None
    owns_gil: bool
    waits_for_gil: bool
    frames: tuple[tuple[str, str, int], ...]
    """(function, file, line), innermost first."""


def find_pystack() -> str | None:
    """Path of the program beside our interpreter or on ``PATH``."""
    beside = Path(sys.executable).with_name("pystack")
    return str(beside) if os.access(beside, os.X_OK) else shutil.which("pystack")


def dump(binary: str, pid: int, *, timeout_s: float = 4.0, run: Callable[..., Finished] = run_bounded) -> tuple[PystackThread, ...] | str:
    """The threads of one process, or why there are none. The target is not stopped."""
    try:
        done = run([binary, "remote", "--no-block", str(pid)], timeout_s)
    except OSError as e:
        return f"pystack could not be started: {e.strerror}"
    if done.code is None:
        return f"pystack gave no answer in {timeout_s:g} s"
    threads = parse(done.out.decode(errors="replace").splitlines())
    if done.code != 0 or not threads:
        return f"pystack ended with {done.code} and no stacks"
    return threads


def parse(lines: Iterable[str]) -> tuple[PystackThread, ...]:
    """Threads of pystack's text; lines of source code between the frames are passed over."""
    threads: list[tuple[re.Match[str], list[tuple[str, str, int]]]] = []
    for line in lines:
        if head := _THREAD.match(line):
            threads.append((head, []))
        elif threads and (frame := _FRAME.fullmatch(line)):
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
