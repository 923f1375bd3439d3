"""How much of a stage the event loop's thread stands in callbacks, where, and whether it waits or computes there. A thread looks every few moments.

Single waits may be too short to notice, and still leave the loop no time: what counts is their sum.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import Any

from ray_rl_debug.trial.child.watchdog import callback_frames, thread_clock

EVERY_S, RARELY_S = 0.02, 0.15
"""Where nothing happens, looks become rare: a process that hangs must look like one from outside."""
QUIET = 0.02
"""Part of the time that the loop's thread runs for its own beat."""
LATE_S = 0.3
"""Looks further apart than this say nothing of the time between them."""
IDLE = 0.3
"""Part of the time between two looks: a process that used less did not compute, a thread that had no core for more was ready."""
BUSY = 0.5
MOST = 100
"""Stacks that are told of one stage."""


class LoopShare:
    """Looks at the thread that makes it."""

    def __init__(self) -> None:
        self._thread, self._tid = threading.get_ident(), threading.get_native_id()
        self._parent, self._lock = os.getppid(), threading.Lock()
        self._new()
        threading.Thread(target=self._watch, daemon=True, name="trial-loop-watchdog").start()

    def _new(self) -> None:
        self._places: dict[tuple[str, ...], list[float]] = {}
        self._looked_s = self._ran_s = self._queued_s = 0.0

    def begin(self) -> None:
        """A stage begins: forget what was seen before."""
        with self._lock:
            self._new()

    def seen(self) -> dict[str, Any]:
        """Of the stage until now: seconds that were looked at, that the loop's thread ran and had no core, and those in callbacks by their stack."""
        with self._lock:
            most = sorted(self._places.items(), key=lambda p: -sum(p[1]))[:MOST]
            places = [{"stack": list(stack), "waited_s": waited, "computed_s": computed} for stack, (waited, computed) in most]
            return {"looked_s": self._looked_s, "ran_s": self._ran_s, "queued_s": self._queued_s, "places": places}

    def _watch(self) -> None:
        before, every_s = (time.monotonic(), time.process_time(), *thread_clock(self._tid)), EVERY_S
        while os.getppid() == self._parent:
            time.sleep(every_s)
            now = time.monotonic(), time.process_time(), *thread_clock(self._tid)
            took, used, ran, queued = (a - b for a, b in zip(now, before, strict=True))
            before, every_s = now, min(1.2 * every_s, RARELY_S) if ran < QUIET * took else EVERY_S
            frame = sys._current_frames().get(self._thread)
            if frame is not None and took < LATE_S:
                self._add(callback_frames(frame), took, used, ran, queued)

    def _add(self, stack: tuple[str, ...], took: float, used: float, ran: float, queued: float) -> None:
        with self._lock:
            self._looked_s, self._ran_s, self._queued_s = self._looked_s + took, self._ran_s + ran, self._queued_s + queued
            if stack:
                times = self._places.setdefault(stack, [0.0, 0.0])
                # While another thread computes, this one may only wait for the interpreter's lock.
                times[0] += took if used < IDLE * took and queued < IDLE * took else 0.0
                times[1] += ran if ran > BUSY * (took - queued) else 0.0
