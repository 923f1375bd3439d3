"""A clock of what a search uses of the processor: on a full machine a second passes in which it finds next to nothing."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 5.0
"""So many seconds may pass for one that is used."""


def own_time(
    used: Callable[[], float] = time.thread_time, passed: Callable[[], float] = time.monotonic, *, patience: float = PATIENCE
) -> Callable[[], float]:
    """Seconds that this thread has used since now, or a part of those that have passed, whichever is more."""
    used_before, passed_before = used(), passed()
    return lambda: max(used() - used_before, (passed() - passed_before) / patience)
