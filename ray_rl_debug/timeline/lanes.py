"""Rows for spans that do not nest: each span goes to the first row where it lies inside or beside what is there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ray_rl_debug.timeline.model import Span

_OPEN = 1 << 63


class Lanes:
    """The rows of one track; spans may come in several calls."""

    def __init__(self) -> None:
        self._ends: list[list[int]] = []
        self._last: list[int] = []

    def place(self, spans: Sequence[Span]) -> Iterator[tuple[Span, int]]:
        """The spans by start, each with the number of its row."""
        for span in sorted(spans, key=lambda s: (s.start_ns, -(_OPEN if s.end_ns is None else s.end_ns))):
            yield span, self._row(span.start_ns, _OPEN if span.end_ns is None else max(span.end_ns, span.start_ns))

    def _row(self, start: int, end: int) -> int:
        for row, ends in enumerate(self._ends):
            if start < self._last[row]:
                continue
            while ends and ends[-1] <= start:
                ends.pop()
            if not ends or end <= ends[-1]:
                ends.append(end)
                self._last[row] = start
                return row
        self._ends.append([end])
        self._last.append(start)
        return len(self._ends) - 1
