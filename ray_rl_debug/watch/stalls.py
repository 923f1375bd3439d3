"""What stands still, and when a closer look at it falls due. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ray_rl_debug.watch.learn import Limits

AHEAD_S = 6.0
"""So long before a look falls due calls that begin anew are minded,"""
CLOSE_S = 3.0
"""and so long before it all signs are read closely: they may make it needless."""
RELOOK_S = 6.0
"""After the beginning of a look that could not tell yet,"""
RELOOK_UNTIL_S = 60.0
"""of a stall younger than this."""
RELOOKS = 2
MAX_REST_S = 40.0
"""Between looks at a run that shows nothing of itself and was found healthy each time."""


class Stall(msgspec.Struct, frozen=True, kw_only=True):
    """Something that has stood still for a while."""

    name: str
    age_s: float
    look_s: float
    """The age at which a first look falls due."""
    reason: str
    role: str | None = None
    overdue: bool = False
    """Out of the ordinary,"""
    excused: bool = False
    """or would be, if no bytes were moved."""
    usual_s: float = 0.0
    """The longest that was healthy."""


class _Looked(msgspec.Struct, frozen=True):
    """The last look at a stall."""

    age_s: float = 0.0
    """When it began."""
    times: int = 0
    """How many in a row could not tell what they saw."""
    until: float = 0.0
    """No other look at it before."""


class Looks:
    """Which stalls were looked at, and when."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._last: dict[str, _Looked] = {}
        self._rest_until = 0.0
        self._found_healthy = 0

    def keep(self, stalls: Iterable[Stall]) -> None:
        """Forget looks at what has moved since."""
        self._last = {s.name: self._last[s.name] for s in stalls if s.name in self._last and s.age_s >= self._last[s.name].age_s}

    def is_due(self, stall: Stall, now: float) -> bool:
        return stall.age_s >= self._due_s(stall) and now >= self._rest_s(stall)

    def is_due_in(self, seconds: float, stall: Stall, now: float) -> bool:
        """Will a look fall due so soon? Not asked of what is no older than usual."""
        return stall.age_s >= max(self._due_s(stall) - seconds, 1.1 * stall.usual_s) and now >= self._rest_s(stall) - seconds

    def taken(self, stalls: Iterable[Stall], now: float, *, took_s: float, rest_s: float, could_tell: bool) -> None:
        """A look: none for `rest_s`, and the next at the same stall when that is much older, or soon if this one could not tell."""
        old = {s.name: (max(0.0, s.age_s - took_s), self._last.get(s.name, _Looked())) for s in stalls}
        self._last = {name: _Looked(age_s, 0 if could_tell else last.times + 1, last.until) for name, (age_s, last) in old.items()}
        self._rest_until = max(self._rest_until, now + rest_s)

    def found_healthy(self, stalls: Iterable[Stall], now: float, *, rest_s: float) -> None:
        """A look saw progress that the cheap signs do not show: the next comes after `rest_s`, and ever later while they show none."""
        rest_s = min(max(rest_s, MAX_REST_S), rest_s * 2**self._found_healthy)
        self._found_healthy += 1
        self._last = {s.name: _Looked(until=now + rest_s) for s in stalls if s.age_s >= s.look_s / 2}

    def saw_progress(self) -> None:
        """The cheap signs show something after all."""
        self._found_healthy = 0

    def _due_s(self, stall: Stall) -> float:
        looked = self._last.get(stall.name)
        if looked is None:
            return stall.look_s
        again = self._limits.look_again * looked.age_s
        if 0 < looked.times <= RELOOKS and looked.age_s < RELOOK_UNTIL_S:
            again = min(again, looked.age_s + RELOOK_S)
        return max(stall.look_s, again)

    def _rest_s(self, stall: Stall) -> float:
        return max(self._rest_until, self._last.get(stall.name, _Looked()).until)
