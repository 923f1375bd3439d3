"""Is the event loop blocked, since when, and by which code? A thread looks at how late the loop's own beat is."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import Any

BEAT_S = 0.05
BLOCKED_S = 0.3
"""A loop that is this late serves nobody for a time that people and servers notice."""
MAX_FRAMES = 30
_LOOP_FILES = ("asyncio/events.py", "asyncio/runners.py", "uvloop/__init__.py")
"""Below these frames a stack is the loop's own, above them it is the callback's."""


class Watchdog:
    """Watches the loop of the thread that makes it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, tell: Callable[..., None]) -> None:
        self._loop, self._tell = loop, tell
        self._thread, self._tid = threading.get_ident(), threading.get_native_id()
        self._parent = os.getppid()
        self._beat_at = time.monotonic()
        self._beat()
        threading.Thread(target=self._watch, daemon=True, name="trial-watchdog").start()

    def _beat(self) -> None:
        self._beat_at = time.monotonic()
        self._loop.call_later(BEAT_S, self._beat)

    def _watch(self) -> None:
        while os.getppid() == self._parent:
            time.sleep(BEAT_S)
            if time.monotonic() - self._beat_at > BLOCKED_S:
                self._follow(self._beat_at)
        os._exit(1)  # whoever gives the orders was killed

    def _follow(self, since: float) -> None:
        """Take stacks until the loop is back. A late loop may also run many short callbacks: each task is told by itself, where it took long."""
        while self._beat_at == since:
            self._follow_task(since, asyncio.current_task(self._loop))

    def _follow_task(self, since: float, task: asyncio.Task[Any] | None) -> None:
        began, clock, pause_s, is_told = time.monotonic(), thread_clock(self._tid), BEAT_S, False
        seen: Counter[tuple[str, ...]] = Counter()

        def tell(*, is_over: bool) -> bool:
            taken_s = time.monotonic() - began
            if taken_s < BLOCKED_S:
                return False
            stack, often = seen.most_common(1)[0] if seen else ((), 0)
            ran, queued = (after - before for after, before in zip(thread_clock(self._tid), clock, strict=True))
            looks = sum(seen.values())
            share = often / looks if looks else 0.0
            self._tell(
                "blocked", since_s=began, for_s=taken_s, stack=list(stack), share=share, looks=looks, cpu_s=ran, queued_s=queued, is_over=is_over
            )
            return True

        while self._beat_at == since and asyncio.current_task(self._loop) is task and os.getppid() == self._parent:
            frame = sys._current_frames().get(self._thread)
            if frame is not None:
                seen[callback_frames(frame)] += 1
            is_told = is_told or tell(is_over=False)
            time.sleep(pause_s)
            pause_s = min(0.5, pause_s * 1.1)
        tell(is_over=True)


def thread_clock(tid: int) -> tuple[float, float]:
    """Seconds that a thread of this process ran, and that it was ready and had no core."""
    try:
        with open(f"/proc/self/task/{tid}/schedstat") as f:
            ran, queued, _ = f.read().split()
        return int(ran) / 1e9, int(queued) / 1e9
    except (OSError, ValueError):
        return 0.0, 0.0


def callback_frames(frame: FrameType) -> tuple[str, ...]:
    """Innermost first, down to the loop; empty when the loop itself is on top: it only waits, or had no core."""
    frames: list[str] = []
    for one, line in reversed(list(traceback.walk_stack(frame))[: 4 * MAX_FRAMES]):
        code = one.f_code
        if code.co_filename.endswith(_LOOP_FILES):
            frames.clear()
            continue
        name = getattr(code, "co_qualname", code.co_name)
        frames.append(f"{name} ({code.co_filename}:{line})")
    if frames and any(f"asyncio/{file}.py" in frames[0] for file in ("base_events", "selector_events")):
        return ()
    return tuple(reversed(frames))[:MAX_FRAMES]
