"""AReaL's ``perf_tracer`` files: Chrome events, one per line, in microseconds since a moment that is written nowhere.

Each process counts from its own construction of the tracer. That moment is limited by the start of the process (a snapshot knows it), by the
time the file was written, and by the process's own session file, which has wall times. Ranks are tied by the ends of their weight updates:
AReaL ends these with a barrier over all ranks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from ray_rl_debug.analyze.phase import phase_of_name
from ray_rl_debug.timeline.layout import Layout, TrackPlace
from ray_rl_debug.timeline.model import Args, Batch, Clock, Count, Instant, Item, SharedEnd, Span, Track
from ray_rl_debug.timeline.sources.areal_sessions import SessionLimits, session_limits
from ray_rl_debug.timeline.sources.json_stream import as_int, as_number, plain_args, read_objects
from ray_rl_debug.timeline.sources.trace_file import TraceFile, in_batches

_RANK = re.compile(r"traces-r(\d+)")
_BARRIER_AT_END = re.compile(r"(^|[._])update_weights_from_distributed$")
_SUBMIT = "batch_task_dispatcher.continously_submit"
_WAIT = "workflow_executor.prepare_batch"
MAX_ENDS = 10_000
_phase = lru_cache(4096)(phase_of_name)


class ArealPerfSource(TraceFile):
    """One ``traces-r*.jsonl``. A file that several runs appended to holds several clocks, one per process."""

    def __init__(self, path: Path, layout: Layout) -> None:
        super().__init__(path)
        found = _RANK.search(path.name)
        self._rank = int(found[1]) if found else None
        self._role = path.parent.name if path.parent.name != "perf_tracer" else "areal"
        self._layout = layout
        self._places: dict[int, TrackPlace] = {}
        self._rows: dict[tuple[int, int], str] = {}
        self._ends: list[SharedEnd] = []
        self._last_us: dict[int, float] = {}
        self._first_submit_us: dict[int, float] = {}
        self._first_wait_end_us: dict[int, float] = {}

    def clocks(self) -> Sequence[Clock]:
        sessions = session_limits(self.path) if len(self._places) == 1 else None
        return [self._clock(pid, place, sessions) for pid, place in self._places.items()]

    def shared_ends(self) -> Sequence[SharedEnd]:
        return self._ends

    def _clock(self, pid: int, place: TrackPlace, sessions: SessionLimits | None) -> Clock:
        started = self._layout.started_ns(place)
        written = self.modified_ns()
        lows = [("start of the process", started)] if started is not None else []
        highs = [("time of the file", written - round(self._last_us[pid] * 1000))] if written is not None and pid in self._last_us else []
        if sessions is not None:
            if pid in self._first_submit_us and sessions.first_submit_ns is not None:
                highs.append(("its first session", sessions.first_submit_ns - round(self._first_submit_us[pid] * 1000)))
            if pid in self._first_wait_end_us and sessions.first_accepted_ns is not None:
                lows.append(("its first accepted session", sessions.first_accepted_ns - round(self._first_wait_end_us[pid] * 1000)))
        low = max(lows, key=lambda x: x[1], default=None)
        high = min(highs, key=lambda x: x[1], default=None)
        evidence = ", ".join(name for name, _ in (x for x in (low, high) if x)) or "no limits"
        return Clock(self._key(pid), place.node, True, low[1] if low else None, high[1] if high else None, evidence)

    def _key(self, pid: int) -> str:
        return f"areal {self._role}/{'?' if self._rank is None else self._rank} (pid {pid})"

    def _read(self) -> Iterator[Batch]:
        self._order: Counter[tuple[int, str]] = Counter()
        self._foreign = 0
        yield from in_batches(self._pairs())
        if self._foreign:
            self._trouble(f"{self._foreign:,} events are not AReaL's and were left out")

    def _pairs(self) -> Iterator[tuple[Track, Item]]:
        for event in read_objects(self.path, self._trouble):
            pid, kind = as_int(event.get("pid")), event.get("ph")
            if pid is None or not isinstance(kind, str):
                self._foreign += 1
                continue
            if kind == "M":
                self._name_row(pid, event)
                continue
            at, name, tid = as_number(event.get("ts")), event.get("name"), as_int(event.get("tid"))
            if at is None or not isinstance(name, str) or tid is None or kind not in ("X", "i", "I", "C"):
                self._foreign += kind not in ("B", "E", "s", "f", "t", "b", "e", "n")
                continue
            yield from self._items(pid, tid, kind, name, at, event)

    def _items(self, pid: int, tid: int, kind: str, name: str, at: float, event: dict[str, Any]) -> Iterator[tuple[Track, Item]]:
        place, start = self._place(pid), round(at * 1000)
        args = tuple(a for a in plain_args(event.get("args")) if a[0] not in ("rank", "role"))
        category = str(event.get("cat") or "areal")
        length = max(0.0, as_number(event.get("dur")) or 0.0)
        self._last_us[pid] = max(at + length, self._last_us.get(pid, 0.0))
        if kind == "C":
            for label, value in args:
                if isinstance(value, (int, float)) and not isinstance(value, bool):
                    yield self._track(place, pid, f"{name} {label}", "counter"), Count(start, float(value))
            return
        row = self._rows.setdefault((pid, tid), f"thread {tid}")
        if kind != "X":
            if name == _SUBMIT:
                self._first_submit_us[pid] = min(at, self._first_submit_us.get(pid, at))
            yield self._track(place, pid, f"{row}: events", "instant"), Instant(start, name, category, args)
            return
        span = self._span(name, category, start, start + round(length * 1000), args)
        if self._is_first:
            self._note(pid, name, at + length, span)
        yield self._track(place, pid, row), span
        if span.phase is not None and span.step is not None:
            yield self._track(place, pid, "phase", rank=place.label), Span(start, span.end_ns, span.phase, "phase", args, span.phase, span.step)

    def _span(self, name: str, category: str, start: int, end: int, args: Args) -> Span:
        step = next((v for k, v in args if k == "global_step"), None)
        is_step = isinstance(step, int) and not isinstance(step, bool)
        return Span(start, end, name, category, args, _phase(name), step if is_step and isinstance(step, int) else None)

    def _note(self, pid: int, name: str, end_us: float, span: Span) -> None:
        """What ties this clock to others."""
        if name == _WAIT:
            self._first_wait_end_us[pid] = min(end_us, self._first_wait_end_us.get(pid, end_us))
        if _BARRIER_AT_END.search(name) and span.end_ns is not None and len(self._ends) < MAX_ENDS:
            number = self._order[(pid, name)] = self._order[(pid, name)] + 1
            self._ends.append(SharedEnd(self._key(pid), f"{self._role} {name} {number}", span.end_ns))

    def _place(self, pid: int) -> TrackPlace:
        place = self._places.get(pid)
        if place is None:
            known = self._layout.rank(self._role, self._rank) if self._rank is not None else None
            label = f"{self._role}/{self._rank}" if self._rank is not None else self._role
            place = self._places[pid] = known or self._layout.process(None, pid, role=self._role, label=label)
        return place

    def _track(self, place: TrackPlace, pid: int, row: str, kind: str = "span", rank: str | None = None) -> Track:
        return Track((*place.path, row), self._key(pid), kind, "AReaL perf_tracer", rank=rank)

    def _name_row(self, pid: int, event: dict[str, Any]) -> None:
        tid, args = as_int(event.get("tid")), event.get("args")
        if event.get("name") == "thread_name" and tid is not None and isinstance(args, dict) and isinstance(args.get("name"), str):
            self._rows.setdefault((pid, tid), f"{args['name']}" if tid < 0 else f"thread {args['name']}")
