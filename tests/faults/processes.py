"""Real processes for the fault suite: programs under test, what is left of them, and what state a target is in."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

MARK = "RAYRL_DEBUG_TEST_MARK"
"""Variable that marks a program under test and all that it starts."""


@contextmanager
def started(program: str) -> Iterator[int]:
    """A Python program that has said that it is ready."""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == b"ready\n"
            yield child.pid
        finally:
            child.kill()


def wait_for(condition: Callable[[], T], what: str, within_s: float = 30.0) -> T:
    """The first true value of `condition`."""
    end = time.monotonic() + within_s
    while True:
        if found := condition():
            return found
        assert time.monotonic() < end, what
        time.sleep(0.002)


def marked(mark: str) -> dict[int, str]:
    """Processes that carry a mark, with their command lines; zombies have ended."""
    found = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        try:
            if f"{MARK}={mark}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                found[int(folder.name)] = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
    return found


def troubles(pid: int) -> list[str]:
    """Threads of a process that are stopped, traced, or about to stop."""
    found = []
    for tid, rows in _statuses(pid):
        state, tracer = rows["State"][:1], rows["TracerPid"]
        pending = (int(rows["SigPnd"], 16) | int(rows["ShdPnd"], 16)) >> 18 & 1
        if state in "Tt" or tracer != "0" or pending:
            found.append(f"{tid}: state {state}, tracer {tracer}, SIGSTOP pending {pending}")
    return found


def _statuses(pid: int) -> Iterator[tuple[str, dict[str, str]]]:
    for tid in os.listdir(f"/proc/{pid}/task"):
        try:
            lines = Path(f"/proc/{pid}/task/{tid}/status").read_text().splitlines()
        except OSError:
            continue
        yield tid, {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}
