"""Gathers what the tables need while batches go by: one pass, bounded memory; of very long runs the oldest steps are left out, and that is said."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from ray_rl_debug.model.timeline_tables import IdleRow, PhaseRow, QueueRow, StalenessRow, Tables, TailRow
from ray_rl_debug.timeline.model import Batch, Count, Span, Track
from ray_rl_debug.timeline.spans import percentile, union

MAX_CELLS = 1_000_000
"""Of (step, phase, rank): 1,000 ranks with 10 phases for 100 steps."""
MAX_DURATIONS = 200_000
"""Of one kind of rollout; of more, every second, fourth, ... one is kept for the percentiles."""
MAX_INTERVALS = 20_000
"""Of one rank; of more, the older half is left out, and the rank's time counts from there on."""
IDLE_GPU_PERCENT = 5.0
_PROGRESS_ROWS = ("tasks", "phase", "sessions")


class Accumulator:
    """What was seen so far. Times stay in the clock of their track until `finish` is told how the clocks stand to each other."""

    def __init__(self) -> None:
        self._of_ranks = _Cells()
        self._of_run = _Cells()
        self._busy: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
        self._busy_since: dict[tuple[str, str], int] = {}
        self._durations: dict[str, list[int]] = defaultdict(list)
        self._ended: dict[str, int] = defaultdict(int)
        self._every: dict[str, int] = defaultdict(lambda: 1)
        self._unfinished: dict[str, int] = defaultdict(int)
        self._gpu: dict[tuple[str, str], list[tuple[str, int, float]]] = defaultdict(list)
        self._staleness: dict[int, tuple[float, float, str]] = {}
        self._last: dict[str, tuple[int, str]] = {}

    def add(self, batch: Batch) -> None:
        track = batch.track
        if track.kind == "counter":
            if track.unit == "%" and track.path[-1].startswith("gpu "):
                found = self._gpu[(track.path[1], track.path[-1].split()[1])]
                found += [(track.clock, i.at_ns, i.value) for i in batch.items if isinstance(i, Count)]
            return
        for item in batch.items:
            if isinstance(item, Span):
                self._add_span(track, item)

    def _add_span(self, track: Track, span: Span) -> None:
        row, clock = track.path[-1], track.clock
        if span.end_ns is not None and row in _PROGRESS_ROWS and (clock not in self._last or span.end_ns > self._last[clock][0]):
            self._last[clock] = (span.end_ns, span.name)
        if span.category in ("session", "rollout") and row != "phase":
            self._add_rollout(span)
        if span.category == "step" and span.args:
            self._add_staleness(span)
        if track.rank is None or span.phase is None:
            return
        cells = self._of_run if track.is_summary else self._of_ranks
        cells.add(track.rank, clock, span)
        if not track.is_summary:
            self._add_busy((track.rank, clock), span)

    def _add_busy(self, key: tuple[str, str], span: Span) -> None:
        if span.end_ns is None:
            self._busy_since[key] = min(span.start_ns, self._busy_since.get(key, span.start_ns))
            return
        busy = self._busy[key]
        busy.append((span.start_ns, span.end_ns))
        if len(busy) > MAX_INTERVALS:
            self._busy[key] = union(busy)[-MAX_INTERVALS // 2 :]

    def _add_rollout(self, span: Span) -> None:
        if span.end_ns is None:
            self._unfinished[span.name] += 1
            return
        found = self._durations[span.name]
        self._ended[span.name] += 1
        if self._ended[span.name] % self._every[span.name] == 0:
            found.append(span.end_ns - span.start_ns)
        if len(found) >= MAX_DURATIONS:
            del found[::2]
            self._every[span.name] *= 2

    def _add_staleness(self, span: Span) -> None:
        args = dict(span.args)
        mean, most, step = args.get("staleness_mean"), args.get("staleness_max"), args.get("step")
        if isinstance(mean, (int, float)) and isinstance(most, (int, float)) and isinstance(step, int):
            self._staleness[step] = (float(mean), float(most), "the trainer's own metric")

    def finish(
        self,
        now_ns: int | None,
        *,
        last_ns: int = 0,
        queues: Mapping[str, Sequence[float]] | None = None,
        gpu_of_rank: Mapping[str, tuple[str, str]] | None = None,
        to_reference: Callable[[str, int], int] = lambda _, at_ns: at_ns,
    ) -> Tables:
        """The tables.

        Args:
            now_ns: When the run was last looked at, in the reference clock; open spans last until then. None: nobody looked, traces were read.
            last_ns: The last moment in the traces.
            queues: Seconds from submission to run, by task.
            gpu_of_rank: Node and index of the GPU that a rank uses.
            to_reference: A clock's moment in the reference clock.
        """
        cells = self._of_ranks if self._of_ranks.has_any() else self._of_run
        last = max(((to_reference(clock, at), name) for clock, (at, name) in self._last.items()), default=None)
        return Tables(
            phases=cells.rows(now_ns or last_ns, to_reference),
            idle=self._idle_rows(now_ns or last_ns, gpu_of_rank or {}, to_reference),
            rollout=self._rollout_rows(),
            staleness=tuple(StalenessRow(s, *self._staleness[s]) for s in sorted(self._staleness)),
            queues=tuple(
                sorted(
                    (QueueRow(n, len(q), percentile(q, 50), percentile(q, 99), max(q)) for n, q in (queues or {}).items() if q),
                    key=lambda r: (-r.max_s, r.task),
                )
            ),
            since_progress_s=(now_ns - last[0]) / 1e9 if now_ns is not None and last is not None else None,
            last_progress=last[1] if last else None,
            steps_left_out=len(cells.left_out),
        )

    def _rollout_rows(self) -> tuple[TailRow, ...]:
        rows = []
        for name in sorted(self._durations.keys() | self._unfinished.keys()):
            found = self._durations.get(name, [])
            p50, p99 = (percentile(found, 50) / 1e9, percentile(found, 99) / 1e9) if found else (None, None)
            tail = None if p50 is None or p99 is None else p99 - p50
            rows.append(TailRow(name, self._ended.get(name, 0), p50, p99, tail, self._unfinished.get(name, 0)))
        return tuple(rows)

    def _idle_rows(self, now_ns: int, gpu_of_rank: Mapping[str, tuple[str, str]], to_reference: Callable[[str, int], int]) -> tuple[IdleRow, ...]:
        spans: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for (rank, clock), found in self._busy.items():
            spans[rank] += [(to_reference(clock, a), to_reference(clock, b)) for a, b in found]
        for (rank, clock), since in self._busy_since.items():
            start = to_reference(clock, since)
            spans[rank].append((start, max(now_ns, start)))
        rows = []
        for rank in sorted(spans):
            busy = union(spans[rank])
            if not busy or busy[-1][1] <= busy[0][0]:
                continue
            window = max(busy[-1][1], now_ns) - busy[0][0]
            gpu = gpu_of_rank.get(rank)
            samples = [(to_reference(c, t), v) for c, t, v in self._gpu.get(gpu, ())] if gpu else []
            empty = [v < IDLE_GPU_PERCENT and not any(a <= t < b for a, b in busy) for t, v in samples]
            bubble = sum(empty) / len(empty) if empty else None
            idle = 1 - sum(b - a for a, b in busy) / window
            rows.append(IdleRow(rank, window / 1e9, idle, f"{gpu[0]} gpu {gpu[1]}" if gpu else None, len(samples), bubble))
        return tuple(rows)


class _Cells:
    """Time of each rank in each phase of each step."""

    def __init__(self) -> None:
        self.left_out: set[int] = set()
        self._cells: dict[int, dict[str, dict[str, int]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(int)))
        self._open: list[tuple[int, str, str, str, int]] = []
        self._count = 0

    def has_any(self) -> bool:
        return bool(self._cells or self._open)

    def add(self, rank: str, clock: str, span: Span) -> None:
        if span.step is None or span.phase is None or span.step in self.left_out:
            return
        if span.end_ns is None:
            self._open.append((span.step, span.phase, rank, clock, span.start_ns))
            return
        of_phase = self._cells[span.step][span.phase]
        self._count += rank not in of_phase
        of_phase[rank] += span.end_ns - span.start_ns
        if self._count > MAX_CELLS and len(self._cells) > 1:
            oldest = min(self._cells)
            self._count -= sum(len(r) for r in self._cells.pop(oldest).values())
            self.left_out.add(oldest)

    def rows(self, now_ns: int, to_reference: Callable[[str, int], int]) -> tuple[PhaseRow, ...]:
        cells = {s: {p: dict(r) for p, r in phases.items()} for s, phases in self._cells.items()}
        still: dict[tuple[int, str], set[str]] = defaultdict(set)
        for step, phase, rank, clock, start in self._open:
            of_phase = cells.setdefault(step, {}).setdefault(phase, {})
            of_phase[rank] = of_phase.get(rank, 0) + max(0, now_ns - to_reference(clock, start))
            still[(step, phase)].add(rank)
        rows = []
        for step in sorted(cells):
            for phase, ranks in sorted(cells[step].items()):
                longest = max(ranks.values())
                straggler = min(r for r, d in ranks.items() if d == longest)
                lost = sum(longest - d for d in ranks.values()) / 1e9
                median = percentile(list(ranks.values()), 50) / 1e9
                rows.append(PhaseRow(step, phase, len(ranks), median, longest / 1e9, straggler, lost, len(still.get((step, phase), ()))))
        return tuple(rows)
