"""An event that a signal handler may set."""

from __future__ import annotations

import contextlib
import os
import select
import threading


class StopEvent(threading.Event):
    """For the handlers of Ctrl-C and ``ray job stop``, which run in the main thread, in the middle of whatever it does.

    threading's own event takes a lock in ``set``: a handler that comes while the main thread is about to wait for the event would wait for itself.
    """

    def __init__(self) -> None:
        super().__init__()
        self._was_set = False
        self._wakes, self._wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def is_set(self) -> bool:
        return self._was_set

    def set(self) -> None:
        self._was_set = True
        with contextlib.suppress(BlockingIOError):  # full: it was set often enough
            os.write(self._wake, b"\0")

    def wait(self, timeout: float | None = None) -> bool:
        if not self._was_set:
            poll = select.poll()
            poll.register(self._wakes, select.POLLIN)
            poll.poll(None if timeout is None else 1000 * max(0.0, timeout))
        return self._was_set
