"""Times as programs write them into logs."""

from __future__ import annotations

import calendar
import functools
import re
from datetime import datetime, timezone

import msgspec

_MONTHS = {name: i for i, name in enumerate("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(), 1)}
_CLOCK = r"(?P<h{0}>\d\d):(?P<m{0}>\d\d):(?P<s{0}>\d\d)(?:[.,:](?P<f{0}>\d{{1,9}})(?:\.\d{{3}}(?=[ \]]))?)?"
"""Ascend's software puts microseconds behind another dot, ``12.070.463``."""
_LEVELS = "(?:DEBUG|TRACE|INFO|NOTICE|SUCCESS|WARN|ERR|FATAL|CRITICAL)"
_FIRST = r"(?:(?<![\s\S])|(?<=\) )|(?<=\]: )|(?<=\| ))"
"""Nothing stands in front but the mark of a process."""
_OPENS = r"(?:(?<![\s\S])\[?|(?<=\) )|(?<=\]: )|(?<=\| )|(?<=\[))"
STAMP = re.compile(
    r"(?<![\d.])(?:"
    r"(?P<year>(?:19|20)\d\d)(?P<dash>[-/]?)(?P<month>\d\d|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec))(?P=dash)(?P<day>\d\d)[T _-]"
    + _CLOCK.format(1)
    + r"(?: ?(?P<zone>(?:Z|UTC)(?![A-Za-z])|[+-]\d\d:?\d\d))?"
    r"|(?P<named>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) +(?P<day2>\d{1,2})(?:, (?P<year8>20\d\d) @)? "
    + _CLOCK.format(2)
    + r"(?: (?P<year2>(?:19|20)\d\d))?(?(year8) {0,4})"  # Kibana pads its columns
    r"|(?P<month3>\d\d)-(?P<day3>\d\d) "
    + _CLOCK.format(3)
    + r"|(?P<level>(?<![A-Za-z])[IWEF])(?P<month4>\d\d?)(?P<day4>\d\d) "
    + _CLOCK.format(4)
    + r")"
    rf"|(?:(?<=[\[ ])(?=[\d:.,]{{8,18}}\])|{_FIRST}(?=[\d:.,]{{8,18}}[ |-]{{1,8}}(?:[\w.-]{{1,40}}[: |]{{1,4}})?{_LEVELS}))"
    + _CLOCK.format(5)
    + rf"|(?P<year6>\d\d)/(?P<month6>\d\d)/(?P<day6>\d\d) (?=[\d:.,]{{8,18}} {_LEVELS})"
    + _CLOCK.format(6)
    + r"|(?P<month7>\d\d)/(?P<day7>\d\d)/(?P<year7>20\d\d)[ -]"
    + _CLOCK.format(7)
    + rf"|{_OPENS}(?P<epoch>1[6-9]\d{{8}})(?P<after>\.?\d{{3,9}})?(?=[\] \t,:|]|$)"
)
"""A stamp with a date (ISO, Ray, Slurm, torch, syslog, vLLM's month-day, glog's EMMDD, log4j's ``26/01/13``, Transformers' ``01/13/2026``, Kibana's),
a bare clock in brackets or in front of a level, or what counts from 1970, in seconds and smaller units."""


YEAR_S = 365 * 86400
AHEAD_S = 2 * 86400
"""A stamp without a year is at most so far ahead of the end of its log: zones and clocks differ."""


class Stamp(msgspec.Struct, frozen=True):
    """A time in a text."""

    time_s: float
    """Since 1970, as if it were UTC unless it names its zone."""
    is_zoned: bool
    end: int
    """Where the text goes on behind it."""
    level: str | None = None


def read_stamp(found: re.Match[str], *, near_s: float | None) -> Stamp | None:
    """The time of a match of `STAMP`.

    Args:
        near_s: When the log ended, or a time after it by less than a year; it supplies the year or the day that some programs leave out.

    None when it is no time of a calendar, or lacks a date that nothing supplies.
    """
    got = found.groupdict()
    if got["epoch"] is not None:
        after = (got["after"] or "").removeprefix(".")
        return Stamp(int(got["epoch"]) + (float(f"0.{after}") if after else 0.0), True, found.end())
    which = next(i for i in "1234567" if got[f"h{i}"] is not None)
    hour, minute, second = (int(got[f"{unit}{which}"]) for unit in "hms")
    fraction = got[f"f{which}"]
    clock_s = hour * 3600 + minute * 60 + second + (float(f"0.{fraction}") if fraction else 0.0)
    if hour > 23 or minute > 59 or second > 60:
        return None
    level = got["level"]
    if which == "1":
        days = _days(int(got["year"]), _month(got["month"]), int(got["day"]))
        zone = got["zone"]
        offset_s = 0 if zone in (None, "Z", "UTC") else int(zone[:3]) * 3600 + int(zone[0] + zone[-2:]) * 60
        return None if days is None else Stamp(days * 86400 + clock_s - offset_s, zone is not None, found.end())
    if which in "67":
        dated = _days(int(got["year7"] or f"20{got['year6']}"), int(got[f"month{which}"]), int(got[f"day{which}"]))
        return None if dated is None else Stamp(dated * 86400 + clock_s, False, found.end())
    if which == "2" and (year := got["year2"] or got["year8"]):
        days = _days(int(year), _MONTHS[got["named"]], int(got["day2"]))
        return None if days is None else Stamp(days * 86400 + clock_s, False, found.end())
    if near_s is None:
        return None
    if which == "5":
        days = int(near_s // 86400)
        # A job may run over midnight: the nearest such clock time is meant.
        best = min((days + shift for shift in (-1, 0, 1)), key=lambda d: abs(d * 86400 + clock_s - near_s))
        return Stamp(best * 86400 + clock_s, False, found.end())
    month, day = (_MONTHS[got["named"]], got["day2"]) if which == "2" else (int(got[f"month{which}"]), got[f"day{which}"])
    now = _year(near_s)
    options = [days for y in (now - 1, now, now + 1) if (days := _days(y, month, int(day))) is not None]
    if not options:
        return None
    best = min(options, key=lambda d: abs(d * 86400 + clock_s - near_s - AHEAD_S + YEAR_S / 2))
    return Stamp(best * 86400 + clock_s, False, found.end(), level)


@functools.lru_cache(1024)
def find_stamp(text: str, *, near_s: float | None, within: int = 200) -> Stamp | None:
    """The first time in the beginning of a line."""
    for found in STAMP.finditer(text, 0, within):
        stamp = read_stamp(found, near_s=near_s)
        if stamp is not None:
            return stamp
    return None


@functools.lru_cache(4096)
def _days(year: int, month: int, day: int) -> int | None:
    if not (1 <= month <= 12 and 1 <= day <= calendar.monthrange(year, month)[1]):
        return None
    return calendar.timegm((year, month, day, 0, 0, 0)) // 86400


def _month(text: str) -> int:
    return int(text) if text.isdigit() else _MONTHS[text]


def _year(near_s: float) -> int:
    try:
        return datetime.fromtimestamp(near_s, tz=timezone.utc).year
    except (ValueError, OverflowError, OSError):
        return 1970
