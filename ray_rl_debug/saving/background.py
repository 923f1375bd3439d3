"""Files that are written while people are told."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

PATIENCE_S = 40.0
"""For all files together, once nothing else is left to do."""


class Saving:
    """Writes files beside what people are told meanwhile: a disk that hangs must not silence us, nor a terminal cost the files."""

    def __init__(self) -> None:
        self._todo: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._work, daemon=True, name="saving")
        self._thread.start()

    def begin(self, function: Callable[[], None]) -> None:
        """Do this next; nothing more once something has failed."""
        self._todo.put(function)

    def finish(self) -> Exception | None:
        """Wait for all; what went wrong first."""
        from ray_rl_debug.model.errors import OutputError

        self._todo.put(None)
        self._thread.join(PATIENCE_S)
        return self._error or (OutputError("the files were not written in time") if self._thread.is_alive() else None)

    def _work(self) -> None:
        while (function := self._todo.get()) is not None:
            try:
                if self._error is None:
                    function()
            except Exception as e:  # noqa: BLE001 told by whoever waits for us
                self._error = e
