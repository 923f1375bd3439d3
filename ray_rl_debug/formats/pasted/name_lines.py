"""Stacks of which somebody wrote the names of the functions alone, one below the other: ``rank 0:`` / ``all_reduce`` / ``step`` / ``main``."""

from __future__ import annotations

import re

from ray_rl_debug.formats.dump import CodePlace
from ray_rl_debug.formats.pasted import joined, labels, loose, places
from ray_rl_debug.formats.pasted.events import Frames
from ray_rl_debug.formats.pasted.lines import Line

_MARKS = " -*+•·>→←|│└├─#0123456789.)[]"
"""What stands before each line of a list."""
_REMARK = re.compile(r"(?<=[\w)]) {1,8}(?:\[[A-Za-z ]{2,40}\]|<?[-=]{1,3}>? ?(?:hangs?|stuck|blocks|blocked|here)\b.{0,40})$", re.IGNORECASE)
"""``async_compile.wait() [HANGS HERE]``"""
_ERRORS = ("Error", "Exception", "Warning", "Interrupt")
_LEAST = 2
"""Lines, one of which is the name of a function and no word of a sentence."""


class NameLines:
    """Such lines, until they are a stack."""

    def __init__(self) -> None:
        self._held: list[tuple[Line, Frames]] = []

    def forget(self) -> None:
        """Another line came."""
        self._held = []

    def add(self, line: Line, place: CodePlace) -> list[tuple[Line, Frames]]:
        """The lines, once they are a stack."""
        self._keep(line, place)
        if len(self._held) < _LEAST or not any(joined.is_code(frames.places[0][0]) for _, frames in self._held):
            return []
        held, self._held = self._held, []
        return held

    def hold(self, line: Line, place: CodePlace) -> None:
        """A name below nobody's name: in a block of code it may stand above a frame."""
        if line.in_fence and joined.is_code(place[0]):
            self._keep(line, place)
        else:
            self.forget()

    def above(self, line: Line, frames: Frames) -> list[tuple[Line, Frames]]:
        """The names right above a frame with its place, in the same block of code: they are frames of its stack."""
        held, self._held = self._held, []
        is_above = bool(held) and held[-1][0].number == line.number - 1 and any(number for _, _, number in frames.places)
        return held if is_above and frames.source == "text" else []  # above a frame as Python writes it stands the source of another

    def _keep(self, line: Line, place: CodePlace) -> None:
        if self._held and line.number - self._held[-1][0].number > 1:
            self._held = []
        self._held.append((line, Frames(places=(place,))))


def name_in(text: str) -> CodePlace | None:
    """The name in a line that holds nothing else; None where it is somebody's, or that of a file."""
    text = _REMARK.sub("", text)
    place = joined.name_alone(places.BULLET.sub("", text.lstrip(_MARKS), count=1))
    if place is not None and (place[0].endswith(_ERRORS) or place[0].startswith("self.")):
        return None  # an error, or a line of source
    return place if place is not None and labels.read(text) is None and not loose.is_of_file(place[0]) else None
