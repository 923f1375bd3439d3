"""Is a process stopped for good? Who dumps or profiles it stops it for moments as well, so does a trainer that copies weights, and one reading
cannot tell.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from ray_rl_debug.collect.procfs import PROC, Stat, read_stat, read_status

LASTS_S, GOES_ON_S = 1.0, 0.3
"""What has held a process without a break for so long is no dump and no pause; the shorter time where the same tracer held it at the first look."""
SIGNAL = 0
"""Holds a process that no tracer holds."""
AGAIN_S = 0.01
TOTAL_S = 4.0
"""For all processes of a node."""
UNKNOWN = "?"
"""The state of a process that tracers hold in turn."""


def tracer_of(pid: int, proc: Path = PROC) -> int | None:
    """The process that traces this one, by its pid."""
    text = read_status(pid, proc).get("TracerPid", "0")
    return int(text) if text.isdigit() and text != "0" else None


def holder_of(pid: int, state: str, proc: Path = PROC) -> int | None:
    """What stops a process in this state: the pid of its tracer, or `SIGNAL`. None where nothing does, or the tracer has just let it go."""
    if state == "T":
        return SIGNAL
    return tracer_of(pid, proc) if state == "t" else None


class Stops:
    """Reads states, and reads those again that may be the moment of somebody's dump."""

    def __init__(self, proc: Path = PROC, clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep) -> None:
        self._proc = proc
        self._clock = clock
        self._sleep = sleep
        self._until = float("inf")
        """When the waiting for all of them has to end; it begins with the first."""

    def read(self, pid: int, first: int | None) -> Stat | None:
        """The process once it is not held, or as it is if what holds it does not let it go.

        `first` held it at the first look, and it got nowhere since. Who dumps may come twice; a signal that stood all the time is believed.
        The state is `UNKNOWN` when there was no time to tell.
        """
        began, holder = self._clock(), first
        needed_s = LASTS_S if first is None else GOES_ON_S if first != SIGNAL else 0.0
        while (stat := read_stat(self._proc / str(pid))) is not None and stat.state in ("t", "T"):
            now, held_by = self._clock(), holder_of(pid, stat.state, self._proc)
            self._until = min(self._until, now + TOTAL_S)
            if held_by is None or (holder is not None and held_by != holder):
                began, needed_s = now, LASTS_S
            elif now - began >= needed_s:
                return stat
            if now >= self._until:
                return msgspec.structs.replace(stat, state=UNKNOWN)
            holder = held_by
            self._sleep(AGAIN_S)
        return stat
