"""How long the last nodes are waited for: where nearly all have answered, silence is a fact, and no reason to wait."""

from __future__ import annotations

ENOUGH = 0.9
"""Of the nodes that were asked. With fewer than ten, all are waited for."""
LEAST_S = 6.0
"""After the window, for the last ones: a loaded node takes seconds for what others do in tenths."""
TIMES = 3.0
"""So many times as long as nearly all have taken."""
QUIET_S = 0.5
"""So long after the last answer the others are late, as answers of one order come in a row."""


class Patience:
    """Told of every answer, it says when the rest is late for good. All times are of one clock, in seconds."""

    def __init__(self, nodes: int) -> None:
        self._enough = nodes if nodes < 10 else int(ENOUGH * nodes)
        self._nodes = nodes
        self._answers = 0
        self._window_end: float | None = None
        self._enough_at: float | None = None
        self._last_at: float | None = None

    def window_ends(self, at_s: float) -> None:
        self._window_end = at_s

    def answered(self, at_s: float) -> None:
        self._answers += 1
        self._last_at = at_s
        if self._answers >= self._enough and self._enough_at is None:
            self._enough_at = at_s

    def ends_at(self) -> float | None:
        """Nobody is waited for beyond this; None while too few have answered."""
        if self._enough_at is None or self._window_end is None or self._enough == self._nodes:
            return None
        return self._window_end + max(LEAST_S, TIMES * (self._enough_at - self._window_end))

    def is_for_few(self, at_s: float) -> bool:
        """Have nearly all answered, and nobody else for a while? Then there is time for what does not wait for the rest."""
        return self.ends_at() is not None and self._last_at is not None and at_s > self._last_at + QUIET_S
