"""Tables from a timeline: phase by step, idle time, rollout tail, staleness, queue times, time since the last progress. Seconds throughout.

Everything is gathered in one pass and in bounded memory: of very long runs the oldest steps are left out, and the tables say so.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

import msgspec

from ray_rl_debug.timeline.model import Batch, Count, Span

MAX_CELLS = 1_000_000
"""Of (step, phase, rank): 1,000 ranks with 10 phases for 100 steps."""
MAX_DURATIONS = 200_000
MAX_INTERVALS = 20_000
IDLE_GPU_PERCENT = 5.0


class PhaseRow(msgspec.Struct, frozen=True):
    """One phase of one step over all ranks that were in it."""

    step: int
    phase: str
    ranks: int
    median_s: float
    max_s: float
    straggler: str
    """The rank that took longest."""
    lost_rank_s: float
    """Sum over ranks of how much earlier than the last one they were done."""
    unfinished: int = 0
    """Ranks still in it when last seen; their time runs up to that moment."""


class IdleRow(msgspec.Struct, frozen=True):
    """How much of the time a rank, and its GPU, had nothing to do."""

    rank: str
    window_s: float
    idle_ratio: float
    """Share of the time in no phase."""
    gpu: str | None = None
    gpu_samples: int = 0
    bubble_ratio: float | None = None
    """Share of GPU samples below 5 % that were taken while the rank was in no phase; None without GPU samples."""


class TailRow(msgspec.Struct, frozen=True):
    """How long rollouts of one kind took."""

    name: str
    count: int
    p50_s: float
    p99_s: float
    tail_s: float
    unfinished: int = 0


class StalenessRow(msgspec.Struct, frozen=True):
    """How many weight versions the consumed samples were behind."""

    step: int
    mean: float
    most: float
    source: str


class QueueRow(msgspec.Struct, frozen=True):
    """How long tasks of one name waited between submission and run."""

    task: str
    count: int
    p50_s: float
    p99_s: float
    max_s: float


class Tables(msgspec.Struct, frozen=True):
    """All tables; an empty one had nothing to be made of."""

    phases: tuple[PhaseRow, ...] = ()
    idle: tuple[IdleRow, ...] = ()
    rollout: tuple[TailRow, ...] = ()
    staleness: tuple[StalenessRow, ...] = ()
    queues: tuple[QueueRow, ...] = ()
    since_progress_s: float | None = None
    """Since any task or phase ended, until the run was last seen."""
    last_progress: str | None = None
    """What ended last."""
    steps_left_out: int = 0


class Accumulator:
    """Gathers what the tables need while batches go by."""

    def __init__(self) -> None:
        self._cells: dict[int, dict[str, dict[str, int]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(int)))
        self._open: list[tuple[int, str, str, int]] = []
        self._cell_count = 0
        self._left_out: set[int] = set()
        self._busy: dict[str, list[tuple[int, int]]] = defaultdict(list)
        self._busy_open: dict[str, int] = {}
        self._durations: dict[str, list[int]] = defaultdict(list)
        self._unfinished: dict[str, int] = defaultdict(int)
        self._gpu: dict[tuple[str, str], list[tuple[int, float]]] = defaultdict(list)
        self._staleness: dict[int, tuple[float, float, str]] = {}
        self._last: tuple[int, str] | None = None

    def add(self, batch: Batch) -> None:
        track = batch.track
        if track.kind == "counter":
            if track.unit == "%" and track.path[-1].startswith("gpu "):
                self._gpu[(track.path[1], track.path[-1].split()[1])] += [(i.at_ns, i.value) for i in batch.items if isinstance(i, Count)]
            return
        for item in batch.items:
            if isinstance(item, Span):
                self._add_span(track.rank, track.path[-1], item)

    def _add_span(self, rank: str | None, row: str, span: Span) -> None:
        if span.end_ns is not None and row in ("tasks", "phase", "sessions") and (self._last is None or span.end_ns > self._last[0]):
            self._last = (span.end_ns, span.name)
        if span.category in ("session", "rollout") and row != "phase":
            self._add_rollout(span)
        if span.category == "step" and span.args:
            self._add_staleness(span)
        if rank is None or span.phase is None:
            return
        if span.end_ns is None:
            self._busy_open[rank] = min(span.start_ns, self._busy_open.get(rank, span.start_ns))
        else:
            busy = self._busy[rank]
            busy.append((span.start_ns, span.end_ns))
            if len(busy) > MAX_INTERVALS:
                self._busy[rank] = union(busy)[-MAX_INTERVALS // 2 :]
        if span.step is None or span.step in self._left_out:
            return
        if span.end_ns is None:
            self._open.append((span.step, span.phase, rank, span.start_ns))
        else:
            of_phase = self._cells[span.step][span.phase]
            self._cell_count += rank not in of_phase
            of_phase[rank] += span.end_ns - span.start_ns
            if self._cell_count > MAX_CELLS and len(self._cells) > 1:
                oldest = min(self._cells)
                self._cell_count -= sum(len(r) for r in self._cells.pop(oldest).values())
                self._left_out.add(oldest)

    def _add_rollout(self, span: Span) -> None:
        if span.end_ns is None:
            self._unfinished[span.name] += 1
            return
        found = self._durations[span.name]
        if len(found) < MAX_DURATIONS:
            found.append(span.end_ns - span.start_ns)

    def _add_staleness(self, span: Span) -> None:
        args = dict(span.args)
        mean, most, step = args.get("staleness_mean"), args.get("staleness_max"), args.get("step")
        if isinstance(mean, (int, float)) and isinstance(most, (int, float)) and isinstance(step, int):
            self._staleness[step] = (float(mean), float(most), "the trainer's own metric")

    def finish(
        self, now_ns: int | None, *, queues: Mapping[str, Sequence[float]] | None = None, gpu_of_rank: Mapping[str, tuple[str, str]] | None = None
    ) -> Tables:
        """The tables.

        Args:
            now_ns: When the run was last seen; open spans last until then.
            queues: Seconds from submission to run, by task.
            gpu_of_rank: Node and index of the GPU that a rank uses.
        """
        return Tables(
            phases=self._phase_rows(now_ns),
            idle=self._idle_rows(now_ns, gpu_of_rank or {}),
            rollout=tuple(
                TailRow(n, len(d), p50 := percentile(d, 50) / 1e9, p99 := percentile(d, 99) / 1e9, p99 - p50, self._unfinished.get(n, 0))
                for n, d in sorted(self._durations.items())
            )
            + tuple(TailRow(n, 0, 0.0, 0.0, 0.0, c) for n, c in sorted(self._unfinished.items()) if n not in self._durations),
            staleness=tuple(StalenessRow(s, *self._staleness[s]) for s in sorted(self._staleness)),
            queues=tuple(
                sorted(
                    (QueueRow(n, len(q), percentile(q, 50), percentile(q, 99), max(q)) for n, q in (queues or {}).items() if q),
                    key=lambda r: (-r.max_s, r.task),
                )
            ),
            since_progress_s=(now_ns - self._last[0]) / 1e9 if now_ns is not None and self._last is not None else None,
            last_progress=self._last[1] if self._last else None,
            steps_left_out=len(self._left_out),
        )

    def _phase_rows(self, now_ns: int | None) -> tuple[PhaseRow, ...]:
        cells = {s: {p: dict(r) for p, r in phases.items()} for s, phases in self._cells.items()}
        still: dict[tuple[int, str], set[str]] = defaultdict(set)
        for step, phase, rank, start in self._open:
            if now_ns is not None:
                of_phase = cells.setdefault(step, {}).setdefault(phase, {})
                of_phase[rank] = of_phase.get(rank, 0) + max(0, now_ns - start)
                still[(step, phase)].add(rank)
        rows = []
        for step in sorted(cells):
            for phase, ranks in sorted(cells[step].items()):
                longest = max(ranks.values())
                straggler = min(r for r, d in ranks.items() if d == longest)
                lost = sum(longest - d for d in ranks.values()) / 1e9
                open_here = still.get((step, phase), set())
                rows.append(
                    PhaseRow(step, phase, len(ranks), percentile(list(ranks.values()), 50) / 1e9, longest / 1e9, straggler, lost, len(open_here))
                )
        return tuple(rows)

    def _idle_rows(self, now_ns: int | None, gpu_of_rank: Mapping[str, tuple[str, str]]) -> tuple[IdleRow, ...]:
        rows = []
        for rank in sorted(self._busy.keys() | self._busy_open.keys()):
            spans = list(self._busy.get(rank, ()))
            if rank in self._busy_open and now_ns is not None:
                spans.append((self._busy_open[rank], max(now_ns, self._busy_open[rank])))
            busy = union(spans)
            if not busy or busy[-1][1] <= busy[0][0]:
                continue
            window = max(busy[-1][1], now_ns or 0) - busy[0][0]
            idle = 1 - sum(b - a for a, b in busy) / window
            gpu = gpu_of_rank.get(rank)
            samples = [(t, v) for t, v in self._gpu.get(gpu, ())] if gpu else []
            empty = [v < IDLE_GPU_PERCENT and not any(a <= t < b for a, b in busy) for t, v in samples]
            bubble = sum(empty) / len(empty) if empty else None
            rows.append(IdleRow(rank, window / 1e9, idle, f"{gpu[0]} gpu {gpu[1]}" if gpu else None, len(samples), bubble))
        return tuple(rows)


def union(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Overlapping spans joined, so that nothing counts twice."""
    joined: list[tuple[int, int]] = []
    for a, b in sorted(spans):
        if joined and a <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], b))
        else:
            joined.append((a, b))
    return joined


def percentile(values: Sequence[float], percent: float) -> float:
    """Nearest rank: always one of the values."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]
