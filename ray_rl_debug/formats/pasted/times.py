"""When the writer looked: how far apart looks at one process are."""

from __future__ import annotations

from ray_rl_debug.formats.pasted.lines import Line


class Times:
    """What was said of it so far."""

    def __init__(self) -> None:
        self.apart_s: float | None = None
        """How far apart the writer says that two looks are."""
        self.seen_twice: tuple[Line, float] | None = None
        """Where the writer says, above all stacks, that two looks showed what follows, and how many seconds lie between them."""
        self._clock_s: float | None = None

    def looked_at(self, clock_s: float) -> None:
        """The writer says at which time of the day what follows was taken."""
        if self._clock_s is not None and clock_s > self._clock_s:
            self.apart_s = clock_s - self._clock_s
        self._clock_s = clock_s
