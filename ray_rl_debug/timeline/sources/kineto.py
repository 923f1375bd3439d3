"""Traces of torch's profiler (Kineto), ``.json`` or ``.json.gz``: read as a stream, times from the file's own base.

``ts`` counts microseconds from ``baseTimeNanoseconds``, which differs from file to file; files without it have Unix time.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ray_rl_debug.timeline.layout import Layout, TrackPlace
from ray_rl_debug.timeline.model import Batch, Instant, Item, SharedEnd, Span, Track
from ray_rl_debug.timeline.sources.flight import ENDS_TOGETHER
from ray_rl_debug.timeline.sources.json_stream import as_int, as_number, plain_args, read_head, read_objects
from ray_rl_debug.timeline.sources.trace_file import TraceFile, in_batches

_BASE = re.compile(r'"baseTimeNanoseconds"\s*:\s*(\d+)')
_HOST = re.compile(r'"host_name"\s*:\s*"([^"]{1,200})"')
_RANK = re.compile(r'"distributedInfo"\s*:\s*\{.{0,200}?"rank"\s*:\s*(\d+)', re.DOTALL)
_NAMED = re.compile(r"^(?P<host>.+)_(?P<pid>\d+)\.(\d+\.)?pt\.trace\.json")
_PID = re.compile(r'"pid"\s*:\s*(\d+)')
MAX_DEVICES = 255
"""Events of a GPU have its index in ``pid``."""
_RANK_IN_NAME = re.compile(r"rank[_-]?(\d+)")
_STEP = re.compile(r"^ProfilerStep#(\d+)$")
_LEFT_OUT = ("python_function", "Trace", "overhead")
"""Python frames of the profiler are ten times as many as everything else; its own marks tell nothing."""
_HEAD_CHARS = 8 << 20
_TAIL_BYTES = 1 << 16
MAX_ENDS = 20_000


class KinetoSource(TraceFile):
    """One trace of one process."""

    def __init__(self, path: Path, layout: Layout) -> None:
        super().__init__(path)
        self._layout = layout
        head = read_head(path, _HEAD_CHARS)
        self._base_ns = _base(path, head)
        host, named, rank, in_name = _HOST.search(head), _NAMED.search(path.name), _RANK.search(head), _RANK_IN_NAME.search(path.name)
        self._host = host[1] if host else named["host"] if named else None
        self._rank = int(rank[1]) if rank else int(in_name[1]) if in_name else None
        self._pid = int(named["pid"]) if named else next((n for m in _PID.finditer(head) if (n := int(m[1])) > MAX_DEVICES), None)
        self._place: TrackPlace | None = None
        self._rows: dict[tuple[object, object], str] = {}
        self._labels: dict[tuple[object, object], str] = {}
        self._collectives: list[tuple[int, int, str]] = []
        self._steps: list[tuple[int, int, int]] = []
        self._left_out = 0

    def shared_ends(self) -> Sequence[SharedEnd]:
        """Ends of collectives, named by the profiler's step and their place in it: all ranks of one schedule number them alike."""
        if self._place is None:
            return ()
        found = []
        for begin, until, number in sorted(set(self._steps)):
            counts: dict[str, int] = defaultdict(int)
            for start, end, name in sorted(set(self._collectives)):
                if begin <= start < until:
                    counts[name] += 1
                    found.append(SharedEnd(self._place.clock, f"step {number} {name} {counts[name]}", end))
        return found[:MAX_ENDS]

    def _read(self) -> Iterator[Batch]:
        self._left_out = 0
        yield from in_batches(self._pairs())
        if self._left_out:
            self._trouble(f"{self._left_out:,} events of Python frames and of the profiler itself were left out")

    def _pairs(self) -> Iterator[tuple[Track, Item]]:
        for event in read_objects(self.path, self._trouble):
            kind, pid, tid = event.get("ph"), event.get("pid"), event.get("tid")
            if kind == "M":
                self._name(pid, tid, event)
                continue
            at, name = as_number(event.get("ts")), event.get("name")
            if kind not in ("X", "i") or at is None or not isinstance(name, str) or as_int(pid) is None:
                continue
            category = str(event.get("cat") or "profiler")
            if category in _LEFT_OUT:
                self._left_out += 1
                continue
            start = self._base_ns + round(at * 1000)
            place = self._where()
            row = self._row(pid, tid, category)
            args = tuple(a for a in plain_args(event.get("args"), limit=8) if a[0] not in ("Ev Idx", "Record function id"))
            if kind == "i":
                yield Track((*place.path, f"{row}: events"), place.clock, "instant", self.name), Instant(start, name, category, args)
                continue
            span = Span(start, start + max(0, round((as_number(event.get("dur")) or 0) * 1000)), name, category, args)
            if self._is_first:
                self._note(span)
            yield Track((*place.path, row), place.clock, "span", f"profiler {self.name}"), span

    def _note(self, span: Span) -> None:
        assert span.end_ns is not None
        if found := _STEP.match(span.name):
            self._steps.append((span.start_ns, span.end_ns, int(found[1])))
        op = _collective(span.name)
        if op is not None and span.category in ("user_annotation", "kernel", "gpu_user_annotation") and len(self._collectives) < MAX_ENDS:
            self._collectives.append((span.start_ns, span.end_ns, f"{span.category} {op}"))

    def _where(self) -> TrackPlace:
        if self._place is None:
            label = f"rank {self._rank}" if self._rank is not None else f"profiled {self.name}"
            self._place = self._layout.process(self._host, self._pid, role="profiler", label=label)
        return self._place

    def _row(self, pid: object, tid: object, category: str) -> str:
        key = (pid, tid)
        row = self._rows.get(key)
        if row is None:
            is_gpu = category in ("kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation")
            label = self._labels.get(key) or (f"stream {tid}" if is_gpu else f"thread {tid}")
            row = self._rows[key] = f"GPU {pid} {label.strip()}" if is_gpu else label.strip()
        return row

    def _name(self, pid: object, tid: object, event: dict[str, Any]) -> None:
        args = event.get("args")
        if event.get("name") == "thread_name" and isinstance(args, dict) and isinstance(args.get("name"), str):
            self._labels.setdefault((pid, tid), args["name"][:80])


def _base(path: Path, head: str) -> int:
    """Unix nanoseconds that ``ts`` counts from; it stands before the events, in older files behind them."""
    found = _BASE.search(head)
    if found is None and path.suffix != ".gz":
        try:
            with path.open("rb") as f:
                f.seek(max(0, path.stat().st_size - _TAIL_BYTES))
                found = _BASE.search(f.read().decode("utf-8", "replace"))
        except OSError:
            found = None
    return int(found[1]) if found else 0


def _collective(name: str) -> str | None:
    """Kind of the collective of an NCCL kernel or a marked section; None for everything else."""
    lowered = name.lower()
    if lowered.startswith(("ncclkernel_", "nccldevkernel_")):
        lowered = lowered.split("_", 1)[1]
    elif lowered.startswith(("nccl:", "gloo:")):
        lowered = lowered[5:].lstrip("_")
    else:
        return None
    return next((op for op in ENDS_TOGETHER if lowered.startswith(op)), None)
