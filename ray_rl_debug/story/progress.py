"""How far each process came, and who stopped first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import msgspec

from ray_rl_debug.model.log_story import StoryProgress
from ray_rl_debug.model.snapshot.log_book import LogBook, LogStep, LogWriter
from ray_rl_debug.story.clocks import Shift, clock_text
from ray_rl_debug.story.people import person

MAX_PEOPLE = 200
"""Listed in a story."""
CLEAR_S = 5.0
"""So much earlier somebody has to fall silent than the next to be called the first."""
_FINE = ("global_step", "step", "train_step", "training step", "train step", "iteration", "iter", "update", "it", "round", "epoch")


def progress(books: Sequence[LogBook], moved: Mapping[str, Shift]) -> tuple[StoryProgress, ...]:
    """The last sign of work of each writer, who came least far first."""
    last: dict[tuple[LogWriter, str | None], StoryProgress] = {}
    for book in books:
        shift = moved[book.file].seconds if book.file in moved else 0.0
        units: dict[LogWriter, LogStep] = {}
        for step in book.steps:
            held = units.get(step.writer)
            if held is None or _fineness(step.unit) < _fineness(held.unit) or (step.unit == held.unit and step.file_line >= held.file_line):
                units[step.writer] = step
        for writer, step in units.items():
            time_s = step.time_s + shift if step.time_s is not None else None
            key = (writer, book.file if writer == LogWriter() else None)
            one = StoryProgress(
                who=person(writer, book), step=step.step, unit=step.unit, file=book.file, line=step.file_line, time_s=time_s, time=_second(time_s)
            )
            held_one = last.get(key)
            if held_one is None or held_one.step is None or _when(held_one) <= _when(one):
                last[key] = one
        for sign in book.signs:
            # a writer without any step is listed by its last line
            if sign.writer not in units and sign.time_s is not None and sign.writer != LogWriter():
                time_s = sign.time_s + shift
                one = StoryProgress(
                    who=person(sign.writer, book), step=None, unit=None, file=book.file, line=sign.file_line, time_s=time_s, time=_second(time_s)
                )
                key = (sign.writer, None)
                if key not in last or (last[key].step is None and (last[key].time_s or 0.0) <= time_s):
                    last[key] = one
    front: dict[str, float] = defaultdict(float)
    for one in last.values():
        if one.unit is not None and one.step is not None:
            front[one.unit] = max(front[one.unit], one.step)
    told = [
        msgspec.structs.replace(one, behind=front[one.unit] - one.step) if one.unit is not None and one.step is not None else one
        for one in last.values()
    ]
    told.sort(key=lambda p: (p.step is None, -(p.behind or 0.0), p.time_s if p.time_s is not None else float("inf"), p.who.label))
    return tuple(told)


def stopped_first(told: Sequence[StoryProgress]) -> str | None:
    """Who stopped first, in one sentence; None where that is not clear."""
    counted = [p for p in told if p.step is not None]
    if len(counted) < 2:
        if counted:
            one = counted[0]
            return f"the last work seen is {one.unit} {one.step:g} of {one.who.label}{f' at {one.time}' if one.time else ''}"
        return None
    by_unit: dict[str | None, list[StoryProgress]] = defaultdict(list)
    for one in counted:
        by_unit[one.unit].append(one)
    unit, held = max(by_unit.items(), key=lambda kv: len(kv[1]))
    least = [p for p in held if p.behind and p.behind > 0]
    if least:
        one = least[0]
        front = (one.step or 0.0) + (one.behind or 0.0)
        others = sum(1 for p in held if p.behind == one.behind) - 1
        more = f" and {others} more" if others else ""
        return f"{one.who.label}{more} stopped first, after {unit} {one.step:g}; others came to {front:g}"
    timed = sorted((p for p in held if p.time_s is not None), key=lambda p: p.time_s or 0.0)
    same, everybody = held[0].step, "both" if len(held) == 2 else f"all {len(held)}"
    if len(timed) == len(held) >= 2 and (timed[1].time_s or 0.0) - (timed[0].time_s or 0.0) >= CLEAR_S:
        return f"{everybody} came to {unit} {same:g}; {timed[0].who.label} wrote it first, at {timed[0].time}"
    return f"{everybody} came to {unit} {same:g}" if len(held) > 1 else None


def _when(one: StoryProgress) -> tuple[float, float]:
    """Without times the higher count of two files is the later one: parts of one log come in any order."""
    return one.time_s or 0.0, one.step or 0.0


def _fineness(unit: str) -> int:
    return _FINE.index(unit) if unit in _FINE else len(_FINE)


def _second(time_s: float | None) -> str | None:
    return clock_text(time_s, tenths=False) if time_s is not None else None
