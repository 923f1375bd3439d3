"""Which ranks did not come, as torch and Horovod name them in their logs."""

from __future__ import annotations

import re
from collections.abc import Iterable

_LIST = r"\d{1,6}(?:, ?\d{1,6}){0,200}"
_ABSENT = re.compile(
    r"\[(\d{1,6})\] (?:finished collective #\d{1,12}, but )?didn't join"
    r"|\bRanks? (" + _LIST + r") failed to pass monitoredBarrier"
    r"|\[missing ranks: (" + _LIST + r")\]"
    r"|^(?:\[[\w,]{1,12}\]<std(?:err|out)>:)?\s{0,4}(\d{1,6}): \[\w"
)
"""The last two are Horovod's: with each tensor, and one line for each rank."""
_READY = re.compile(r"\[ready ranks: (" + _LIST + r")\]")
"""Horovod before 0.13 lists those that came."""
ALL_JOINED = re.compile(r"\] joined but didn't finish collective #(?P<n>\d{1,12})")
"""How torch says that nobody is missing."""


def absent_in(lines: Iterable[str]) -> tuple[int, ...]:
    """The ranks that the lines call missing; of a list of those that came, the ranks between them. Higher ones may not exist."""
    found: dict[int, None] = {}
    for line in lines:
        for one in _ABSENT.finditer(line):
            found.update(dict.fromkeys(_numbers(next(group for group in one.groups() if group))))
        for one in _READY.finditer(line):
            ready = frozenset(_numbers(one[1]))
            found.update(dict.fromkeys(rank for rank in range(max(ready)) if rank not in ready) if max(ready) < _MOST else {})
    return tuple(found)


def names_ranks(line: str) -> bool:
    """Does it name ranks that did not come, or say that all came?"""
    return any(pattern.search(line) for pattern in (_ABSENT, _READY, ALL_JOINED))


def _numbers(told: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d{1,6}", told)]


_MOST = 4096
"""A higher number is no rank."""
