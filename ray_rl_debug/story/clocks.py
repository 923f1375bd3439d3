"""One clock for logs whose stamps differ: other time zones, and machines whose clocks are off.

Ranks that train together finish the same step at nearly the same moment. So the times of equal steps of two files tell how far apart
their clocks are. Where no steps are shared, a whole number of quarter hours between the last stamp and the time at which the file
was last written is another time zone; and so is a whole number of hours between their failures where nothing else of them comes together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from statistics import median

import msgspec

from ray_rl_debug.model.snapshot.log_book import LogBook, LogStep

QUARTER_S = 900.0
HALF_HOUR_S = 1800.0
"""Few zones differ by less, so a few equal steps do not tell one."""
HOUR_S = 3600.0
MAX_ZONE_S = 14 * HOUR_S
SAME_FAILURE_S = 30.0
"""What fails in one job within so much less than an hour fails together."""
ZONE_ERROR_S = 120.0
"""A difference so near to whole quarter hours is another zone."""
MIN_SKEW_S = 2.0
"""Smaller differences are the ranks' own, not those of their clocks."""
MIN_SHARED = 3
"""Equal steps that a correction by less than a zone needs."""
MAX_SPREAD = 0.2
"""How much these may differ among themselves, as a part of the correction."""


class Shift(msgspec.Struct, frozen=True):
    """What is added to the times of a file."""

    seconds: float
    why: str


def clock_text(time_s: float, *, tenths: bool = True) -> str | None:
    """A time as people read it, to a tenth of a second or to the second; None for what no calendar holds."""
    try:
        moment = datetime.fromtimestamp(time_s, tz=timezone.utc)
    except (ValueError, OverflowError, OSError):
        return None
    return f"{moment:%Y-%m-%d %H:%M:%S}{f'.{moment.microsecond // 100_000}' if tenths else ''}"


def shifts(books: Sequence[LogBook]) -> tuple[dict[str, Shift], str | None]:
    """The shift of each file whose clock differs, and why the order between files is not sure (None when it is)."""
    timed = [b for b in books if b.last_time_s is not None]
    if len(timed) < 2:
        lacking = [b for b in books if b.last_time_s is None and b.events]
        return {}, _without_times(lacking, books)
    reference = _reference(timed)
    found: dict[str, Shift] = {}
    steps = {b.file: _step_times(b.steps) for b in timed}
    were_copied = _were_copied(timed)
    for book in timed:
        if book is reference:
            continue
        shift = _by_steps(steps[book.file], steps[reference.file]) if steps[reference.file] else None
        if shift is None and not book.is_zoned and reference.last_time_s is not None and not were_copied:
            shift = _by_write_time(book, reference)
        if shift is None and not (book.is_zoned and reference.is_zoned) and _is_apart(book, reference):
            shift = _by_failures(book, reference)
        if shift is not None:
            found[book.file] = shift
    lacking = [b for b in books if b.last_time_s is None and b.events]
    if lacking:
        return found, _without_times(lacking, books)
    apart = [b for b in timed if b is not reference and b.file not in found and _is_apart(b, reference)]
    unsure = f"the times of {_name(apart[0])} and {_name(reference)} do not overlap, and nothing tells whether their clocks agree" if apart else None
    return found, unsure


def _reference(timed: Sequence[LogBook]) -> LogBook:
    """The file that the others are compared with: one that names its zone, with many steps, with many lines."""
    return max(timed, key=lambda b: (b.is_zoned, len(b.steps), b.lines, b.file))


def _step_times(steps: Sequence[LogStep]) -> Mapping[tuple[str, float], float]:
    return {(s.unit, s.step): s.time_s for s in steps if s.time_s is not None}


def _by_steps(own: Mapping[tuple[str, float], float], other: Mapping[tuple[str, float], float]) -> Shift | None:
    apart = [other[key] - own[key] for key in own.keys() & other.keys()]
    if not apart:
        return None
    middle = median(apart)
    zones = round(middle / QUARTER_S) * QUARTER_S
    counted = f"{len(apart)} equal {'step' if len(apart) == 1 else 'steps'}"
    spread = median(abs(a - middle) for a in apart)
    is_zone = zones % HALF_HOUR_S == 0 or len(apart) >= MIN_SHARED
    if zones and is_zone and abs(middle - zones) <= ZONE_ERROR_S and spread <= ZONE_ERROR_S:
        rest = middle - zones
        if len(apart) >= MIN_SHARED and abs(rest) >= MIN_SKEW_S and spread <= MAX_SPREAD * abs(rest):
            return Shift(
                middle,
                f"its stamps are {_hours(zones)} the others' and {abs(rest):.1f} s {'behind' if rest > 0 else 'ahead'}, by {counted}: zone and clock",
            )
        return Shift(zones, f"its stamps are {_hours(zones)} the others', by {counted}: another time zone")
    if len(apart) >= MIN_SHARED and abs(middle) >= MIN_SKEW_S and spread <= MAX_SPREAD * abs(middle):
        side = "behind" if middle > 0 else "ahead of"
        return Shift(middle, f"its clock is {abs(middle):.1f} s {side} the others, by {counted}")
    return None


def _by_write_time(book: LogBook, reference: LogBook) -> Shift | None:
    """The zone of a file from when it was written, compared with the same of the reference."""
    zone, other = _written_zone(book), _written_zone(reference)
    if zone is None or other is None or zone == other:
        return None
    return Shift(zone - other, f"its stamps are {_hours(zone - other)} the others', by the times at which the files were written: another time zone")


def _by_failures(book: LogBook, reference: LogBook) -> Shift | None:
    """The zone of a file that shares nothing else: what fails in one job fails within moments, so whole hours between are another zone."""
    own, other = _first_failure_s(book), _first_failure_s(reference)
    if own is None or other is None:
        return None
    zones = round((other - own) / HOUR_S) * HOUR_S
    if not zones or abs(zones) > MAX_ZONE_S or abs(other - own - zones) > SAME_FAILURE_S:
        return None
    return Shift(zones, f"its stamps are {_hours(zones)} the others', by the failures of both: another time zone")


def _first_failure_s(book: LogBook) -> float | None:
    return min((e.time_s for e in book.events if e.time_s is not None and e.handled is None), default=None)


def _written_zone(book: LogBook) -> float | None:
    if book.modified_time_s is None or book.last_time_s is None:
        return None
    apart = book.modified_time_s - book.last_time_s
    zones = round(apart / QUARTER_S) * QUARTER_S
    return zones if abs(apart - zones) <= ZONE_ERROR_S and abs(zones) <= MAX_ZONE_S else None


def _were_copied(timed: Sequence[LogBook]) -> bool:
    """Was one of the files written at a time that no zone explains by its last stamp? Then a copy gave them these times."""
    written = [b for b in timed if b.modified_time_s is not None]
    return len(written) < 2 or any(_written_zone(b) is None for b in written)


def is_comparable(a: LogBook, b: LogBook, moved: Mapping[str, Shift]) -> bool:
    """Do the times of two files tell an order? Not where one names its zone, the other does not, and nothing brings them together."""
    return a.is_zoned == b.is_zoned or a.file in moved or b.file in moved or not _is_apart(a, b)


def _is_apart(a: LogBook, b: LogBook) -> bool:
    if a.first_time_s is None or b.first_time_s is None or a.last_time_s is None or b.last_time_s is None:
        return False
    return a.last_time_s < b.first_time_s - 60 or b.last_time_s < a.first_time_s - 60


def _without_times(lacking: Sequence[LogBook], books: Sequence[LogBook]) -> str | None:
    """Which files have no times beside others, whose order is not sure for that."""
    if not lacking or len(books) < 2:
        return None
    more = len(lacking) - 1
    others = f"and {more} more {'file' if more == 1 else 'files'} have" if more else "has"
    return f"{_name(lacking[0])} {others} no times"


def _name(book: LogBook) -> str:
    return book.file.rsplit("/", 1)[-1]


def _hours(seconds: float) -> str:
    hours = abs(seconds) / 3600
    return f"{hours:g} h {'behind' if seconds > 0 else 'ahead of'}"
