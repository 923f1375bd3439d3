"""Signals that ask a command to end, heard only where an end leaves nothing behind."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType
from typing import Any

ASKS_TO_END = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interruptions:
    """From `with` on, a signal that asks us to end is kept; it interrupts in `heard()` alone, and the next one is kept again.

    An interruption shuts the door behind it, before its KeyboardInterrupt leaves the handler. So no second signal (``timeout`` sends two) can come
    between the first one and the lines that clean up, however close it follows. What is kept is heard at the next `heard()`, or at the end.
    """

    def __init__(self) -> None:
        self._is_heard = False
        self._kept: list[int] = []
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interruptions:
        for number in ASKS_TO_END:
            if callable(handler := signal.getsignal(number)):  # one that is ignored (nohup) stays so
                self._before[number] = handler
                signal.signal(number, self._came)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._hear_kept()

    @contextlib.contextmanager
    def heard(self) -> Iterator[None]:
        """Here a signal interrupts, also one that was kept.

        Raises:
            KeyboardInterrupt: where the handler that stood before raises it.
        """
        self._is_heard = True
        try:
            self._hear_kept()
            yield
        finally:
            self._is_heard = False

    def _came(self, number: int, frame: FrameType | None) -> None:
        if not self._is_heard:
            self._kept.append(number)
            return
        self._is_heard = False
        self._before[number](number, frame)

    def _hear_kept(self) -> None:
        if self._kept:
            number = self._kept[0]
            self._kept.clear()
            self._is_heard = False
            self._before[number](number, None)
