"""Tables with a heading and one row for each step, as notebooks show them and people paste them: with bars, with tabs, or in columns of blanks."""

from __future__ import annotations

import re

from ray_rl_debug.metric_sources.gathered import as_number

_LEAST = 3
"""Columns: a step, and two metrics."""
_STEP = re.compile(r"(?:(?:global|training|train)[ _])?steps?|iter(?:ation)?", re.IGNORECASE)
_MAY_BE_HEAD = re.compile(r"step|iter", re.IGNORECASE)
_RULE = re.compile(r"[\s|:+=-]*")
_BLANKS = re.compile(r"\s*\t\s*| {2,}")


class HeadedTable:
    """The table in which the lines of a text stand, if they stand in one."""

    def __init__(self) -> None:
        self._head: list[str] = []
        self._step = 0

    def take(self, text: str) -> tuple[int, dict[str, float]] | None:
        """The step and the values of a row; None of any other line. A line of another form ends the table."""
        if not self._head and _MAY_BE_HEAD.search(text) is None:
            return None
        cells = _cells(text)
        numbers = [as_number(cell) for cell in cells]
        step = next((i for i, cell in enumerate(cells) if _STEP.fullmatch(cell)), None)
        if len(cells) >= _LEAST and step is not None and numbers.count(None) == len(cells):
            self._head, self._step = cells, step
        elif self._head and len(cells) >= _LEAST:
            return self._row(numbers)
        elif _RULE.fullmatch(text) is None:  # a rule or an empty line may stand between the heading and the rows
            self._head = []
        return None

    def _row(self, numbers: list[float | None]) -> tuple[int, dict[str, float]] | None:
        values = numbers[-len(self._head) :]  # pandas puts the number of the row in front of it
        step = values[self._step] if 0 <= len(numbers) - len(self._head) <= 1 else None
        if step is None or not step.is_integer():
            return None
        return int(step), {
            name: value for i, (name, value) in enumerate(zip(self._head, values, strict=True)) if value is not None and i != self._step
        }


def _cells(text: str) -> list[str]:
    """What stands between bars, else between tabs or several blanks; cells between bars may be empty."""
    if text.count("|") >= _LEAST - 1:
        return [cell.strip() for cell in text.strip().strip("|").split("|")]
    return _BLANKS.split(text.strip())
