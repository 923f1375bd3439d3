"""Writes a trace in Chrome's JSON format, for tools that read nothing else. Perfetto's own format carries more (`perfetto`).

Two levels only: a process becomes a ``pid``, its tracks become ``tid``. Times are microseconds from the beginning of the trace: as Unix time
they would not fit the readers' doubles. Spans that overlap freely become async events, each with an id of its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import BinaryIO

from ray_rl_debug.timeline.lanes import Lanes
from ray_rl_debug.timeline.model import Args, Count, Instant, Item, Span, Track


class ChromeWriter:
    """One trace being written; same use as `PerfettoWriter`."""

    def __init__(self, out: BinaryIO, *, origin_ns: int, descriptions: Mapping[tuple[str, ...], str] | None = None) -> None:
        self._out = out
        self._origin_ns = origin_ns
        self._descriptions = descriptions or {}
        self._pids: dict[tuple[str, ...], int] = {}
        self._tids: dict[tuple[Track, int], int] = {}
        self._lanes: dict[Track, Lanes] = {}
        self._async_ids = 0
        self._first = True
        out.write(b'{"displayTimeUnit":"ms","otherData":{"origin_unix_ns":"%d"},"traceEvents":[\n' % origin_ns)

    def declare(self, track: Track) -> None:
        self._pid(track)

    def write(self, track: Track, items: Sequence[Item], offset_ns: int = 0) -> None:
        """Write items of one track; of a track of kind ``async`` those of one group."""
        spans = [i for i in items if isinstance(i, Span)]
        if track.kind == "async":
            self._write_group(track, spans, offset_ns)
        else:
            lanes = self._lanes.setdefault(track, Lanes())
            for span, lane in lanes.place(spans):
                self._complete(track, span, lane, offset_ns)
        for item in items:
            if isinstance(item, Instant):
                self._emit(track, 0, "i", item.name, item.category, item.at_ns + offset_ns, item.args, s="t")
                self._flows(track, 0, item, item.at_ns + offset_ns)
            elif isinstance(item, Count):
                self._emit(track, 0, "C", track.path[-1], "", item.at_ns + offset_ns, ((track.unit or "value", item.value),))

    def close(self) -> None:
        self._out.write(b"\n]}\n")

    def _complete(self, track: Track, span: Span, lane: int, offset_ns: int) -> None:
        start = span.start_ns + offset_ns
        if span.end_ns is None:
            self._emit(track, lane, "B", span.name, span.category, start, span.args)
        else:
            self._emit(track, lane, "X", span.name, span.category, start, span.args, dur=_micro(max(0, span.end_ns - span.start_ns)))
        self._flows(track, lane, span, start)

    def _write_group(self, track: Track, spans: Sequence[Span], offset_ns: int) -> None:
        self._async_ids += 1
        marks: list[tuple[int, int, int, str, Span]] = []
        for span in spans:
            length = (1 << 62) if span.end_ns is None else max(0, span.end_ns - span.start_ns)
            marks.append((span.start_ns, 1 if length else 0, -length, "b", span))
            if span.end_ns is not None:
                marks.append((span.start_ns + length, 0 if length else 1, length, "e", span))
        for at, _, _, phase, span in sorted(marks, key=lambda m: m[:3]):
            args = span.args if phase == "b" else ()
            self._emit(track, 0, phase, span.name, span.category or "async", at + offset_ns, args, id=f"0x{self._async_ids:x}")

    def _flows(self, track: Track, lane: int, item: Span | Instant, at_ns: int) -> None:
        for flow in item.flows_out:
            self._emit(track, lane, "s", "flow", "flow", at_ns, (), id=f"0x{flow:x}")
        for flow in item.flows_in:
            self._emit(track, lane, "f", "flow", "flow", at_ns, (), id=f"0x{flow:x}", bp="e")

    def _pid(self, track: Track) -> int:
        path = track.path[:-1]
        pid = self._pids.get(path)
        if pid is None:
            pid = self._pids[path] = len(self._pids) + 1
            self._meta(pid, 0, "process_name", "name", " / ".join(path[1:]) or path[0])
            self._meta(pid, 0, "process_sort_index", "sort_index", pid)
            if about := self._descriptions.get(path):
                self._meta(pid, 0, "process_labels", "labels", about)
        return pid

    def _tid(self, track: Track, lane: int) -> int:
        tid = self._tids.get((track, lane))
        if tid is None:
            tid = self._tids[(track, lane)] = len(self._tids) + 1
            self._meta(self._pid(track), tid, "thread_name", "name", track.path[-1])
            self._meta(self._pid(track), tid, "thread_sort_index", "sort_index", tid)
        return tid

    def _meta(self, pid: int, tid: int, name: str, label: str, value: object) -> None:
        self._line({"ph": "M", "pid": pid, "tid": tid, "name": name, "args": {label: value}})

    def _emit(self, track: Track, lane: int, phase: str, name: str, category: str, at_ns: int, args: Args, **more: object) -> None:
        event: dict[str, object] = {
            "ph": phase,
            "name": name,
            "pid": self._pid(track),
            "tid": self._tid(track, lane),
            "ts": _micro(at_ns - self._origin_ns),
        }
        if category:
            event["cat"] = category
        if args:
            event["args"] = dict(args)
        self._line({**event, **more})

    def _line(self, event: dict[str, object]) -> None:
        encoded = json.dumps(event, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")
        self._out.write(encoded if self._first else b",\n" + encoded)
        self._first = False


def _micro(ns: int) -> float | int:
    """Microseconds: exact to the nanosecond for runs of up to some months."""
    return ns // 1000 if ns % 1000 == 0 else ns / 1000
