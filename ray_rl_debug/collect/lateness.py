"""How late this machine wakes us: where others spin or crowd the cores, what looks still may only have been read late."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import msgspec

from ray_rl_debug.collect.procfs import PROC, read_text

STEP_S = 0.1
LAST_WAIT_S = 1.0


class LateWakes(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured over one window."""

    late_s: float
    """Of all waits together,"""
    longest_s: float
    """and of the one that was late most."""
    waits: int
    pressure: float | None
    """Part of the window in which somebody on this machine was ready to run and had no core; None from a kernel without PSI."""


class LatenessMeter:
    """Waits `STEP_S` again and again in a thread of its own, from the start to `stop`."""

    def __init__(self, proc: Path = PROC) -> None:
        self._proc = proc
        self._ended = threading.Event()
        self._late: list[float] = []
        self._began, self._stalled = time.monotonic(), read_stalled(proc)
        self._thread = threading.Thread(target=self._run, daemon=True, name="lateness")
        self._thread.start()

    def stop(self) -> LateWakes:
        """What was measured until now."""
        window, stalled = time.monotonic() - self._began, read_stalled(self._proc)
        self._ended.set()
        self._thread.join(LAST_WAIT_S)  # the wait that is under way may be the one that was late
        late = list(self._late)
        both = stalled is not None and self._stalled is not None and window > 0
        return LateWakes(
            late_s=round(sum(late), 3),
            longest_s=round(max(late, default=0.0), 3),
            waits=len(late),
            pressure=round(min(1.0, (stalled - self._stalled) / window), 3) if both else None,  # type: ignore[operator]
        )

    def _run(self) -> None:
        while True:
            began = time.monotonic()
            ended = self._ended.wait(STEP_S)
            late = time.monotonic() - began - STEP_S
            if late >= 0:
                self._late.append(late)
            if ended:
                return


def read_stalled(proc: Path = PROC) -> float | None:
    """Seconds since boot in which somebody waited for a core (``some`` of /proc/pressure/cpu)."""
    first = (read_text(proc / "pressure" / "cpu", 512) or "").partition("\n")[0].split()
    total = first[-1] if first[:1] == ["some"] else ""
    return int(total[6:]) / 1e6 if total.startswith("total=") and total[6:].isdigit() else None
