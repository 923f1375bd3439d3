"""AReaL's ``session_tracer`` files: one rollout per line, in Unix seconds: how long it took, and its parts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from ray_rl_debug.timeline.layout import Layout, TrackPlace
from ray_rl_debug.timeline.model import Batch, Span, Track
from ray_rl_debug.timeline.sources.json_stream import as_int, as_number, read_objects, unix_ns
from ray_rl_debug.timeline.sources.trace_file import TraceFile

_RANK = re.compile(r"sessions-r(\d+)")
_PLAUSIBLE_S = 1e9
"""Times before 2001 are no Unix times: old versions wrote a monotonic clock."""
_SHOWN = ("task_id", "session_id", "status", "reason")


class SessionLimits(msgspec.Struct, frozen=True):
    """What a process's sessions tell about its clock."""

    first_submit_ns: int | None
    first_accepted_ns: int | None


class ArealSessionSource(TraceFile):
    """One ``sessions-r*.jsonl``."""

    def __init__(self, path: Path, layout: Layout) -> None:
        super().__init__(path)
        self._layout = layout

    def _read(self) -> Iterator[Batch]:
        foreign = 0
        track: Track | None = None
        for row in read_objects(self.path, self._trouble):
            spans = _spans(row)
            if not spans:
                foreign += 1
                continue
            if track is None:
                place = self._place(row)
                track = Track((*place.path, "sessions"), place.clock, "async", "AReaL session_tracer")
            yield Batch(track, spans)
        if foreign:
            self._trouble(f"{foreign:,} lines are no sessions with Unix times and were left out")

    def _place(self, row: dict[str, Any]) -> TrackPlace:
        found = _RANK.search(self.path.name)
        rank = as_int(row.get("rank")) if found is None else int(found[1])
        folder = self.path.parent.name
        role = str(row.get("role") or (folder if folder != "session_tracer" else "areal"))
        known = self._layout.rank(role, rank) if rank is not None else None
        return known or self._layout.process(None, None, role=role, label=f"{role}/{rank}")


def _spans(row: dict[str, Any]) -> list[Span]:
    """The session, then its parts; empty for a line that is none."""
    start, end = as_number(row.get("submit_ts")), as_number(row.get("finalized_ts"))
    if start is None or start < _PLAUSIBLE_S:
        return []
    args = tuple((k, v) for k in _SHOWN if isinstance(v := row.get(k), (str, int)))
    end_ns = None if end is None or end < start else unix_ns(end)
    status = str(row.get("status") or "")
    spans = [Span(unix_ns(start), end_ns, "session" if status in ("", "accepted") else f"session {status}", "session", args)]
    phases = row.get("phases")
    for name, parts in phases.items() if isinstance(phases, dict) else ():
        for part in parts if isinstance(parts, list) else ():
            begin = as_number(part.get("start_ts")) if isinstance(part, dict) else None
            if begin is None or begin < _PLAUSIBLE_S:
                continue
            until = as_number(part.get("end_ts"))
            spans.append(Span(unix_ns(begin), None if until is None else unix_ns(until), str(name), "rollout"))
    return spans


def session_limits(perf_path: Path) -> SessionLimits | None:
    """Limits from the session file that belongs to a perf_tracer file; None where there is none."""
    parts = list(perf_path.parts)
    if "perf_tracer" not in parts:
        return None
    parts[len(parts) - 1 - parts[::-1].index("perf_tracer")] = "session_tracer"
    path = Path(*parts).with_name(perf_path.name.replace("traces-", "sessions-"))
    if not path.is_file():
        return None
    submits, accepted = [], []
    for row in read_objects(path, lambda _: None):
        submit, final = as_number(row.get("submit_ts")), as_number(row.get("finalized_ts"))
        if submit is not None and submit >= _PLAUSIBLE_S:
            submits.append(submit)
            if final is not None and row.get("status") == "accepted":
                accepted.append(final)
    return SessionLimits(_first_ns(submits), _first_ns(accepted))


def _first_ns(times_s: list[float]) -> int | None:
    return unix_ns(min(times_s)) if times_s else None
