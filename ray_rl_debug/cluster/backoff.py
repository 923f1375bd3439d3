"""When what failed may be tried again: each time twice as late, up to a limit."""

from __future__ import annotations

import time
from collections.abc import Callable


class Backoff:
    """Of several things by name."""

    def __init__(self, first_s: float, longest_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._first_s, self._longest_s = first_s, longest_s
        self._clock = clock
        self._failed: dict[str, tuple[int, float, str]] = {}

    def is_due(self, name: str) -> bool:
        """May it be tried now?"""
        return self._failed.get(name, (0, float("-inf"), ""))[1] <= self._clock()

    def failed(self, name: str, why: str) -> None:
        times = self.times(name) + 1
        wait_s = min(self._longest_s, self._first_s * 2.0 ** min(times - 1, 30))
        self._failed[name] = (times, self._clock() + wait_s, why)

    def worked(self, name: str) -> None:
        self._failed.pop(name, None)

    def times(self, name: str) -> int:
        """How often it failed in a row."""
        return self._failed.get(name, (0, 0.0, ""))[0]

    def why(self, name: str) -> str:
        """The last reason; empty when nothing failed."""
        return self._failed.get(name, (0, 0.0, ""))[2]
