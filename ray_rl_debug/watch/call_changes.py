"""Calls that end and begin again between two readings: a loop whose longest call fills most of a step shows the same title each time it is read.

Only while something seems to stand still, a thread reads the titles of a few processes four times a second, and rests as soon as they have changed.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from pathlib import Path

from ray_rl_debug.collect.procfs import PROC

EVERY_S = 0.25
ARMED_S = 3.0
"""After the last reading that wanted it."""
MAX_TITLES = 4
"""Different calls, one process of each: the ranks of a role do the same."""


class CallChanges:
    """Sees that a title has changed, though it may be as before when it is read again."""

    def __init__(self, proc: Path = PROC, every_s: float = EVERY_S) -> None:
        self._proc = proc
        self._every_s = every_s
        self._lock = threading.Lock()
        self._armed: dict[int, bytes] = {}
        self._turned: set[int] = set()
        self._until = 0.0
        self._thread: threading.Thread | None = None

    def watch(self, titles: Mapping[int, bytes]) -> set[int]:
        """Which of the processes that were named before have turned; from now on these are watched."""
        chosen: dict[bytes, int] = {}
        for pid in sorted(titles):
            if len(chosen) < MAX_TITLES:
                chosen.setdefault(titles[pid], pid)
        with self._lock:
            turned, self._turned = self._turned, set()
            self._armed = {pid: title for title, pid in chosen.items()}
            self._until = time.monotonic() + ARMED_S
            if self._armed and (self._thread is None or not self._thread.is_alive()):
                self._thread = threading.Thread(target=self._look, daemon=True, name="turns")
                self._thread.start()
        return turned

    def _look(self) -> None:
        while True:
            with self._lock:
                if not self._armed or time.monotonic() > self._until:
                    self._thread = None  # the next reading starts another one
                    return
                armed = dict(self._armed)
            for pid, title in armed.items():
                now = _title(f"{self._proc}/{pid}/cmdline", len(title))
                if now is not None and now != title:
                    with self._lock:
                        if self._armed.get(pid) == title:
                            del self._armed[pid]
                            self._turned.add(pid)
            time.sleep(self._every_s)


def _title(path: str, length: int) -> bytes | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return os.read(descriptor, length) or None
    except OSError:
        return None
    finally:
        os.close(descriptor)
