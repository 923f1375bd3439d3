"""A metric as a picture of braille dots: its band, the step at which it went wrong.

Eight dots stand in each character. A library would draw no better in this little room, and the one that is common (plotext) changed all its names
between two versions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
_LABEL = 9
WIDE = 100
"""Positive values of which the largest is so many times the smallest are drawn by their logarithms."""


def draw(
    steps: Sequence[int],
    values: Sequence[float],
    *,
    width: int,
    height: int = 6,
    low: float | None = None,
    high: float | None = None,
    mark: int | None = None,
) -> Iterator[str]:
    """Lines of the picture; far values beyond the 99th percentile lie on its edge.

    Args:
        low: lower end of the band in which the metric is wanted, drawn as a dashed line; None for no end.
        high: its upper end.
        mark: a step that is marked below the axis.
    """
    columns = max(10, width - _LABEL - 2)
    is_log = is_wide(values)
    scale: Callable[[float], float] = math.log10 if is_log else float
    ends = [v for v in (low, high) if v is not None and (v > 0 or not is_log)]
    bottom, top = _range([scale(v) for v in values], [scale(v) for v in ends])
    cells = [[0] * columns for _ in range(height)]
    first, last = steps[0], max(steps[-1], steps[0] + 1)
    before: tuple[int, int] | None = None
    for step, value in zip(steps, values, strict=True):
        x = round((step - first) / (last - first) * (2 * columns - 1))
        y = round((top - min(max(scale(value), bottom), top)) / (top - bottom) * (4 * height - 1))
        for px, py in _between(before, (x, y)):
            cells[py // 4][px // 2] |= _DOTS[py % 4][px % 2]
        before = (x, y)
    bands = {round((top - scale(v)) / (top - bottom) * (height - 1)): v for v in ends if bottom <= scale(v) <= top}
    for row in range(height):
        edge = top if row == 0 else bottom if row == height - 1 else None
        label = bands.get(row, 10**edge if edge is not None and is_log else edge)
        blank = "╌" if row in bands else " "
        line = "".join(chr(0x2800 + c) if c else blank for c in cells[row])
        yield f"{'' if label is None else _number(label):>{_LABEL}} {'┤' if label is not None else '│'}{line}".rstrip()
    yield from _axis(first, last, columns, mark)


def _between(a: tuple[int, int] | None, b: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """Dots from one value to the next, so that the curve is a line."""
    if a is not None:
        count = max(abs(b[0] - a[0]), abs(b[1] - a[1]))
        for i in range(1, count):
            yield a[0] + round((b[0] - a[0]) * i / count), a[1] + round((b[1] - a[1]) * i / count)
    yield b


def is_wide(values: Sequence[float]) -> bool:
    """Are they drawn by their logarithms?"""
    return min(values) > 0 and max(values) > WIDE * min(values)


def _axis(first: int, last: int, columns: int, mark: int | None) -> Iterator[str]:
    line, words = ["─"] * columns, [" "] * columns
    ends = f"step {first}", str(last)
    words[: len(ends[0])] = ends[0]
    words[columns - len(ends[1]) :] = ends[1]
    if mark is not None and first <= mark <= last:
        x = round((mark - first) / (last - first) * (columns - 1))
        line[x] = "▲"
        text = str(mark)
        at = min(max(0, x - len(text) // 2), columns - len(text))
        if not "".join(words[max(0, at - 1) : at + len(text) + 1]).strip():
            words[at : at + len(text)] = text
    yield f"{'':>{_LABEL}} └{''.join(line)}"
    yield f"{'':>{_LABEL}}  {''.join(words)}".rstrip()


def _range(values: Sequence[float], more: Sequence[float]) -> tuple[float, float]:
    ordered = sorted(values)
    edge = len(ordered) // 100
    kept = [*ordered[edge : len(ordered) - edge], *more]
    bottom, top = min(kept), max(kept)
    return (bottom, top) if top > bottom else (bottom - 0.5, bottom + 0.5)


def _number(value: float) -> str:
    return f"{value:.3g}"
