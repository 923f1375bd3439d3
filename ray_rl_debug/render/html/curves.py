"""A metric as an SVG: its band, its line, the step at which it went wrong."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ray_rl_debug.metrics.model import Series
from ray_rl_debug.render.html.text import esc
from ray_rl_debug.render.text_plot import is_wide

WIDTH, HEIGHT = 720, 190
SMALL_WIDTH, SMALL_HEIGHT = 420, 130
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 12, 16, 22
MAX_POINTS = 1500
"""More are drawn as the lowest and highest of each of half as many stretches."""
MAX_BROKEN = 300


def draw(series: Series, *, low: float | None = None, high: float | None = None, mark: int | None = None, small: bool = False) -> str:
    """The curve; values that are no numbers are marks on the lower edge. Empty where the metric never was a number."""
    steps, values = series.finite()
    if not steps:
        return ""
    width, height = (SMALL_WIDTH, SMALL_HEIGHT) if small else (WIDTH, HEIGHT)
    is_log = is_wide(values)
    low, high = (v if v is not None and (v > 0 or not is_log) else None for v in (low, high))
    box = _Box(series.steps[0], max(series.steps[-1], series.steps[0] + 1), *_range(values, low, high, is_log), width, height, is_log)
    parts = [f"<rect class=frame {box.inside()}/>", _band(box, low, high), _line(box, steps, values, mark)]
    broken = [s for s, v in zip(series.steps, series.values, strict=True) if v is None or not math.isfinite(v)][:MAX_BROKEN]
    parts += [f'<circle class=broken r="3.5" cx="{box.x(s)}" cy="{height - _BOTTOM}"><title>step {s}: no number</title></circle>' for s in broken]
    if mark is not None and box.first <= mark <= box.last:
        x = box.x(mark)
        end = "end" if x > width - 90 else "start"
        shift = -5 if end == "end" else 5
        parts.append(f'<line class=turn x1="{x}" x2="{x}" y1="{_TOP}" y2="{height - _BOTTOM}"/>')
        parts.append(f'<text class=at x="{round(x + shift, 1)}" y="{_TOP + 12}" text-anchor="{end}">step {mark}</text>')
    parts += [
        f'<text x="{_LEFT - 6}" y="{_TOP + 9}" text-anchor="end">{esc(_number(box.top))}</text>',
        f'<text x="{_LEFT - 6}" y="{height - _BOTTOM}" text-anchor="end">{esc(_number(box.bottom))}</text>',
        f'<text x="{_LEFT}" y="{height - 6}">step {box.first}{", logarithmic" if is_log else ""}</text>',
        f'<text x="{width - _RIGHT}" y="{height - 6}" text-anchor="end">{series.steps[-1]}</text>',
    ]
    label = f"{series.name}, steps {series.steps[0]} to {series.steps[-1]}, {_number(min(values))} to {_number(max(values))}"
    return f'<svg role=img aria-label="{esc(label, 300)}" viewBox="0 0 {width} {height}">{"".join(parts)}</svg>'


class _Box:
    """Where steps and values lie in the drawing."""

    def __init__(self, first: int, last: int, bottom: float, top: float, width: int, height: int, is_log: bool) -> None:
        self.first, self.last, self.bottom, self.top, self.width, self.height = first, last, bottom, top, width, height
        self._scale: Callable[[float], float] = math.log10 if is_log else float

    def x(self, step: float) -> float:
        return round(_LEFT + (step - self.first) / (self.last - self.first) * (self.width - _LEFT - _RIGHT), 1)

    def y(self, value: float) -> float:
        bottom, top = self._scale(self.bottom), self._scale(self.top)
        inside = min(max(self._scale(value), bottom), top)
        return round(_TOP + (top - inside) / (top - bottom) * (self.height - _TOP - _BOTTOM), 1)

    def inside(self) -> str:
        return f'x="{_LEFT}" y="{_TOP}" width="{self.width - _LEFT - _RIGHT}" height="{self.height - _TOP - _BOTTOM}"'


def _band(box: _Box, low: float | None, high: float | None) -> str:
    """Where the rule wants the metric."""
    if low is None and high is None:
        return ""
    upper = box.y(high) if high is not None else float(_TOP)
    lower = box.y(low) if low is not None else float(box.height - _BOTTOM)
    right = box.width - _RIGHT
    edges = "".join(f'<line class=edge x1="{_LEFT}" x2="{right}" y1="{y}" y2="{y}"/>' for v, y in ((high, upper), (low, lower)) if v is not None)
    words = " to ".join(_number(v) for v in (low, high) if v is not None)
    told = f"<title>wanted: {'at most ' if low is None else 'at least ' if high is None else ''}{esc(words)}</title>"
    shape = f'<rect class=band x="{_LEFT}" y="{upper}" width="{right - _LEFT}" height="{round(max(0.0, lower - upper), 1)}">{told}</rect>'
    return shape + edges


def _line(box: _Box, steps: Sequence[int], values: Sequence[float], mark: int | None) -> str:
    """The curve, grey before the marked step. Few values are points as well."""
    before = [(s, v) for s, v in zip(steps, values, strict=True) if mark is not None and s <= mark]
    after = [(s, v) for s, v in zip(steps, values, strict=True) if mark is None or s >= mark]
    lines = "".join(
        f'<polyline class="{kind}" points="{" ".join(f"{box.x(s)},{box.y(v)}" for s, v in _thinned(points))}"/>'
        for kind, points in (("line was", before), ("line", after))
        if len(points) > 1
    )
    if len(steps) > 60:
        return lines
    return lines + "".join(
        f'<circle class=point r="2.5" cx="{box.x(s)}" cy="{box.y(v)}"><title>step {s}: {esc(_number(v))}</title></circle>'
        for s, v in zip(steps, values, strict=True)
    )


def _thinned(points: Sequence[tuple[int, float]]) -> Sequence[tuple[int, float]]:
    if len(points) <= MAX_POINTS:
        return points
    stretch = -(-len(points) // (MAX_POINTS // 2))
    kept: list[tuple[int, float]] = []
    for i in range(0, len(points), stretch):
        part = points[i : i + stretch]
        kept += sorted({min(part, key=lambda p: p[1]), max(part, key=lambda p: p[1])})
    return kept


def _range(values: Sequence[float], low: float | None, high: float | None, is_log: bool) -> tuple[float, float]:
    """What is drawn: a spike beyond the 99.5th percentile lies on the edge; the ends of a band always have their own place."""
    ordered = sorted(values)
    edge = len(ordered) // 200
    bottom, top = ordered[edge], ordered[len(ordered) - 1 - edge]
    limits = [v for v in (low, high) if v is not None]
    bottom, top = min([bottom, *limits]), max([top, *limits])  # a limit that all values are beyond has its place too
    if is_log:
        return bottom / 1.2, top * 1.2
    room = 0.04 * (top - bottom) or max(abs(top), 1.0) * 0.05
    return bottom - room, top + room


def _number(value: float) -> str:
    return f"{value:.3g}"
