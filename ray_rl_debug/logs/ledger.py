"""Failures of one file, equal ones counted: each is told where it came first, and again where it came last if that ended otherwise."""

from __future__ import annotations

import msgspec

from ray_rl_debug.logs.events import as_event, spot
from ray_rl_debug.logs.spotted import Key, Spotted
from ray_rl_debug.logs.window import LOOK_AHEAD_BYTES, Window
from ray_rl_debug.model.snapshot.log_book import LogEvent, LogWriter
from ray_rl_debug.signatures.match import Matcher

MAX_EVENTS = 120
"""Different ones kept of one file, the first; later ones are counted."""
_AROUND_BYTES = 4 << 10


class _Held:
    def __init__(self, event: LogEvent) -> None:
        self.event = event
        self.count = 1
        self.last: tuple[int, int, bytes, int] | None = None
        """Of the last equal one: its line, where it begins in the bytes around it, these, and where its first line ends."""


class Ledger:
    """Takes failures in the order of the file."""

    def __init__(self, matcher: Matcher, writer: LogWriter, near_s: float | None) -> None:
        self._matcher, self._writer, self._near_s = matcher, writer, near_s
        self.common: LogWriter | None = None
        """Whom the marks of all lines name."""
        self._held: dict[Key, _Held] = {}
        self.left_out = 0

    def knows(self, key: Key, number: int, window: Window, start: int, end: int) -> bool:
        """Count one more of a known kind; False when there is none."""
        held = self._held.get(key)
        if held is None:
            return False
        held.count += 1
        begin = max(0, start - _AROUND_BYTES)
        held.last = number, start - begin, window.text[begin : end + LOOK_AHEAD_BYTES], min(end, start + _AROUND_BYTES) - begin
        return True

    def add(self, one: Spotted, window: Window, number: int) -> None:
        """Note a failure."""
        if self.knows(one.key, number, window, one.start, one.end):
            return
        if len(self._held) >= MAX_EVENTS:
            self.left_out += 1
            return
        self._held[one.key] = _Held(as_event(window, one, number))

    def events(self) -> tuple[LogEvent, ...]:
        """All that were noted."""
        return tuple(event for held in self._held.values() for event in self._told(held))

    def _told(self, held: _Held) -> tuple[LogEvent, ...]:
        event = held.event
        if held.last is None:
            return (event,)
        number, start, text, _ = held.last
        whole = msgspec.structs.replace(event, count=held.count, last_line=number)
        window = Window(text, near_s=self._near_s, common=self.common)
        end = text.find(b"\n", start)
        again = spot(window, start, len(text) if end == -1 else end, self._matcher, self._writer)
        last = as_event(window, again, number) if again is not None else None
        if last is None or (last.handled is None) == (event.handled is None):
            return (whole,)
        if last.handled is not None:
            return (msgspec.structs.replace(whole, handled=last.handled),)
        before = msgspec.structs.replace(event, count=held.count - 1)
        return (before, last)
