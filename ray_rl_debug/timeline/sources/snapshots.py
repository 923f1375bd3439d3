"""Snapshots and their reports: sampled stacks, CPU and GPU counters, snapshots as instants, a hang as an open slice with its findings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from ray_rl_debug.analyze.seen import Seen, describe_place
from ray_rl_debug.analyze.stacks import stack_frames
from ray_rl_debug.analyze.view import View
from ray_rl_debug.model.report import Finding, Report, State, Who
from ray_rl_debug.model.snapshot import Node, Snapshot
from ray_rl_debug.timeline.layout import Layout, TrackPlace
from ray_rl_debug.timeline.model import CLUSTER, Args, Batch, Count, Frame, Held, Instant, SharedEnd, Span, Track, wall_clock
from ray_rl_debug.timeline.sources.flight import flight_batches, flight_ends

SAMPLED_KINDS = frozenset({"ray-worker", "driver", "child", "named"})
MAX_BRIDGE_NS = 120_000_000_000
"""Equal stacks further apart than this are not drawn as one slice: nobody looked in between."""
MIN_SLICE_NS = 1_000_000
_MIB = 1 << 20
_GIB = 1 << 30


def snapshot_source(views: Sequence[View], reports: Sequence[Report], layout: Layout, since_ns: Mapping[tuple[str, int], int] | None = None) -> Held:
    """What the snapshots show, in order of time.

    Args:
        views: One per snapshot.
        reports: One per snapshot.
        layout: Where processes stand.
        since_ns: Start of the unfinished task of a process in the reference clock, by (node name, pid): a hang is drawn from there on.
    """
    ordered = sorted(zip(views, reports, strict=True), key=lambda v: v[0].snapshot.taken_time_s)
    batches: list[Batch] = []
    for view, report in ordered:
        batches.append(_snapshot_instant(view.snapshot, report))
        batches += _node_counters(view.snapshot)
    batches += _stacks([v for v, _ in ordered], layout)
    if ordered:
        batches += _verdicts([r for _, r in ordered], layout, since_ns or {}, [v.snapshot for v, _ in ordered])
    records = {(n.name, r.pid, r.rank, r.source): r for v, _ in ordered for n in v.snapshot.nodes for r in n.flight_records}
    ends: list[SharedEnd] = []
    for (node, pid, rank, _), record in records.items():
        place = layout.process(node, pid, role="collectives", label=f"rank {rank}" if rank is not None else None)
        batches += flight_batches(record, place)
        ends += flight_ends(record, place)
    return Held("snapshots", batches, ends=ends)


def _ns(seconds: float) -> int:
    return int(seconds * 1e9)


def _snapshot_instant(snapshot: Snapshot, report: Report) -> Batch:
    args: Args = (
        ("verdict", report.verdict.state.value),
        ("summary", report.verdict.summary),
        ("nodes", len(snapshot.nodes)),
        ("gaps", len(report.gaps)),
    )
    return Batch(
        Track((CLUSTER, "snapshots"), kind="instant"),
        [Instant(_ns(snapshot.taken_time_s), f"snapshot: {report.verdict.state.value}", "snapshot", args)],
    )


def _counter(path: tuple[str, ...], name: str, unit: str, at_ns: int, value: float | None, clock: str) -> Iterator[Batch]:
    if value is not None:
        yield Batch(Track((*path, name), clock, "counter", unit=unit), [Count(at_ns, value)])


def _node_counters(snapshot: Snapshot) -> Iterator[Batch]:
    for node in snapshot.nodes:
        at, clock, path = _ns(node.started_time_s + node.window_s), wall_clock(node.name), (CLUSTER, node.name)
        yield from _counter(path, "load (1 min)", "load", at, node.load1, clock)
        if node.memory_total_bytes is not None and node.memory_available_bytes is not None:
            yield from _counter(path, "memory used", "GiB", at, (node.memory_total_bytes - node.memory_available_bytes) / _GIB, clock)
        for name, moved in (("network received", node.network_received_bytes), ("network sent", node.network_sent_bytes)):
            if moved is not None and node.window_s:
                yield from _counter(path, name, "MiB/s", at, moved / node.window_s / _MIB, clock)
        for gpu in node.gpus or ():
            name = f"gpu {gpu.index}"
            yield from _counter(path, f"{name} utilization", "%", at, gpu.utilization_percent, clock)
            yield from _counter(path, f"{name} memory", "GiB", at, gpu.memory_used_bytes / _GIB if gpu.memory_used_bytes is not None else None, clock)
            yield from _counter(path, f"{name} power", "W", at, gpu.power_watts, clock)


def _process_counters(seen: Seen, path: tuple[str, ...], clock: str) -> Iterator[Batch]:
    process, node = seen.process, seen.node
    window = process.window_s
    start = _ns(node.started_time_s)
    if window:
        for name, unit, value in (
            ("cpu", "%", 100 * process.cpu_s / window if process.cpu_s is not None else None),
            ("read", "MB/s", process.read_bytes / window / 1e6 if process.read_bytes is not None else None),
            ("written", "MB/s", process.written_bytes / window / 1e6 if process.written_bytes is not None else None),
        ):
            yield from _counter(path, name, unit, start, value, clock)
    end = _ns(node.started_time_s + node.window_s)
    yield from _counter(path, "memory", "GiB", end, process.rss_bytes / _GIB if process.rss_bytes is not None else None, clock)
    queued = [s.tx_queue_bytes for s in process.sockets or () if s.tx_queue_bytes is not None]
    if queued:
        yield from _counter(path, "socket send queues", "KiB", end, sum(queued) / 1024, clock)


def _stacks(views: Sequence[View], layout: Layout) -> Iterator[Batch]:
    """Per process one slice for every run of samples in which its telling thread stood at one place; the full stack is on the slice."""
    moments: dict[tuple[str, int], list[tuple[int, str, Args, tuple[Frame, ...]]]] = defaultdict(list)
    phases: dict[TrackPlace, list[tuple[int, int, str]]] = defaultdict(list)
    for view in views:
        for seen in view:
            if seen.process.kind not in SAMPLED_KINDS:
                continue
            place = layout.process(seen.node.name, seen.process.pid)
            yield from _process_counters(seen, place.path, place.clock)
            moments[(seen.node.name, seen.process.pid)] += _samples(seen)
            if seen.phase is not None:
                phases[place].append((_ns(seen.node.started_time_s), _ns(seen.node.started_time_s + seen.node.window_s), seen.phase))
    for place, seen_in in phases.items():
        yield Batch(Track((*place.path, "phase (sampled)"), place.clock, origin="samples of py-spy"), _phases(seen_in))
    for key, found in moments.items():
        place = layout.process(*key)
        spans: list[Span] = []
        for at, name, args, frames in sorted(found, key=lambda m: m[0]):
            last = spans[-1] if spans else None
            if last is not None and last.end_ns is not None and at - last.end_ns <= MAX_BRIDGE_NS:
                is_same = last.name == name and last.stack == frames
                spans[-1] = Span(last.start_ns, max(at, last.end_ns) if is_same else at, last.name, last.category, last.args, stack=last.stack)
                if is_same:
                    continue
            spans.append(Span(at, at + MIN_SLICE_NS, name, "stack", args, stack=frames))
        if spans:
            yield Batch(Track((*place.path, "stack (sampled)"), place.clock, origin="samples of py-spy"), spans)


def _phases(found: Sequence[tuple[int, int, str]]) -> list[Span]:
    """One slice for every run of captures that saw the process in one phase."""
    spans: list[Span] = []
    for start, end, phase in sorted(found):
        last = spans[-1] if spans else None
        if last is not None and last.end_ns is not None and last.name == phase and start - last.end_ns <= MAX_BRIDGE_NS:
            spans[-1] = Span(last.start_ns, max(end, last.end_ns), phase, "phase")
        else:
            spans.append(Span(start, end, phase, "phase"))
    return spans


def _samples(seen: Seen) -> Iterator[tuple[int, str, Args, tuple[Frame, ...]]]:
    telling = seen.telling
    if telling is None:
        return
    samples = seen.process.samples
    for sample, place in zip(samples[-len(seen.places) :], seen.places, strict=False):
        thread = next((t for t in sample.threads if t.tid == telling.tid and t.name == telling.name), None)
        if thread is None:
            continue
        frames = tuple(Frame(f.function, f.file, f.line) for f in reversed(stack_frames(seen.node, thread.stack)))
        args: Args = (("thread", telling.name or "?"), ("phase", seen.phase or "unknown"), ("kind", place.kind.value))
        yield _ns(seen.node.started_time_s + sample.at_s), describe_place(place), args, frames


def _verdicts(reports: Sequence[Report], layout: Layout, since_ns: Mapping[tuple[str, int], int], snapshots: Sequence[Snapshot]) -> Iterator[Batch]:
    """The verdicts as slices: each until the next one, the last one open when it is a hang; culprits and victims as slices of their own."""
    spans: list[Span] = []
    times = [_ns(s.taken_time_s) for s in snapshots]
    for i, (report, at) in enumerate(zip(reports, times, strict=True)):
        if report.verdict.state not in (State.HANG, State.SLOW):
            continue
        is_last = i == len(reports) - 1
        began = _began(report, since_ns, snapshots[i].nodes)
        start = began if began is not None and (not spans) else at
        previous = spans[-1] if spans else None
        if previous is not None and previous.args[0][1] == report.verdict.summary and i and times[i - 1] >= previous.start_ns:
            start = previous.start_ns
            spans.pop()
        spans.append(_verdict_span(report, start, None if is_last else times[i + 1], began))
    if spans:
        yield Batch(Track((CLUSTER, "verdict")), spans)
        if spans[-1].end_ns is None:
            yield from _states(reports[-1], spans[-1].start_ns, layout)


def _verdict_span(report: Report, start: int, end: int | None, began: int | None) -> Span:
    args: list[tuple[str, str | int | float | bool]] = [
        ("summary", report.verdict.summary),
        ("certainty", report.verdict.certainty.value),
        ("drawn from", "start of the stuck task" if began is not None else "first snapshot that saw it"),
    ]
    for n, finding in enumerate((f for f in report.findings if f.root), 1):
        args.append((f"finding {n}", f"{finding.id} {finding.name} ({finding.certainty.value}): {finding.summary}"))
        args.append((f"finding {n} who", ", ".join(_label(w) for w in finding.who)))
        args += [(f"finding {n} evidence {k}", f"{e.where}: {e.text}") for k, e in enumerate(finding.evidence[:5], 1)]
        args += [(f"finding {n} remedy {k}", step) for k, step in enumerate(finding.remedy[:3], 1)]
    return Span(start, end, f"{report.verdict.state.value.upper()}: {report.verdict.summary}", "verdict", tuple(args))


def _label(who: Who) -> str:
    return f"{who.label} ({who.node} pid {who.pid})" if who.pid is not None else who.label


def _began(report: Report, since_ns: Mapping[tuple[str, int], int], nodes: Sequence[Node]) -> int | None:
    """When the stuck task of a culprit began; else that of a victim that began last."""
    roots = [f for f in report.findings if f.root]
    for whos in ([w for f in roots for w in f.who], [w for f in roots for w in f.victims]):
        found = [since_ns[(w.node, w.pid)] for w in whos if w.node is not None and w.pid is not None and (w.node, w.pid) in since_ns]
        if found:
            return max(found)
    return None


def _states(report: Report, since: int, layout: Layout) -> Iterator[Batch]:
    """CULPRIT and WAITS slices at the processes of the root findings, open to the end; `since` is in the reference clock."""
    done: set[tuple[str, int]] = set()
    roots: list[Finding] = [f for f in report.findings if f.root]
    for word, whos in (("CULPRIT", [(f, w) for f in roots for w in f.who]), ("WAITS", [(f, w) for f in roots for w in f.victims])):
        for finding, who in whos:
            if who.node is None or who.pid is None or (who.node, who.pid) in done:
                continue
            done.add((who.node, who.pid))
            place = layout.process(who.node, who.pid)
            args: Args = (("finding", f"{finding.id} {finding.name}"), ("summary", finding.summary))
            yield Batch(Track((*place.path, "state")), [Span(since, None, f"{word}: {finding.name}", "hang", args)])
