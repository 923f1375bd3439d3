"""Puts a timeline together: snapshots, task events and other sources in, a trace file and tables out."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

import msgspec

from ray_rl_debug.analyze.view import View, build_view
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.errors import UsageError
from ray_rl_debug.model.report import Report
from ray_rl_debug.model.snapshot import Gap, NodeClock, Snapshot
from ray_rl_debug.model.timeline_tables import Tables
from ray_rl_debug.model.whole_files import whole_file
from ray_rl_debug.ray_state.task_events import TaskEvents
from ray_rl_debug.timeline.accumulate import Accumulator
from ray_rl_debug.timeline.build import MAX_SLICES, TracePlan, make_plan, write_trace
from ray_rl_debug.timeline.chrome import ChromeWriter
from ray_rl_debug.timeline.clocks import align
from ray_rl_debug.timeline.facts import drivers_of, events_of_snapshots, pings_of, stuck_since
from ray_rl_debug.timeline.layout import Layout, build_layout
from ray_rl_debug.timeline.model import CLUSTER, Batch, Held, Instant, Source, Track, wall_clock
from ray_rl_debug.timeline.perfetto import PerfettoWriter
from ray_rl_debug.timeline.sources.ray_owners import Owners, ToReference
from ray_rl_debug.timeline.sources.ray_tasks import last_progress_ns, narrow, queue_times, ray_task_source
from ray_rl_debug.timeline.sources.snapshots import snapshot_source

FORMATS = ("perfetto", "chrome")
_GZIP_LEVEL = 5


class Inputs(msgspec.Struct, frozen=True):
    """All that a timeline is made of."""

    snapshots: tuple[Snapshot, ...] = ()
    reports: tuple[Report, ...] | None = None
    """One per snapshot; None: they are made here."""
    events: TaskEvents | None = None
    others: tuple[Callable[[Layout], Source], ...] = ()
    """Sources that need to know where processes stand."""
    gaps: tuple[Gap, ...] = ()
    job_id: str | None = None


class Timeline(msgspec.Struct, frozen=True):
    """What came of it."""

    plan: TracePlan
    tables: Tables
    path: Path | None
    size_bytes: int | None
    gaps: tuple[Gap, ...]


def make_timeline(
    inputs: Inputs, path: Path | None, *, format_: str = "perfetto", max_slices: int = MAX_SLICES, progress: Callable[[str], None] = lambda _: None
) -> Timeline:
    """Write the trace, where a path is given, and derive the tables.

    Args:
        inputs: What was gathered or read.
        path: Where the trace goes; with the ending ``.gz`` it is compressed. None: tables only.
        format_: ``perfetto`` or ``chrome``.
        max_slices: The shortest slices are left out beyond this.
        progress: Told what is done.

    Raises:
        OutputError: the file cannot be written.
        UsageError: not one of the formats.
    """
    if format_ not in FORMATS:
        raise UsageError(f"{format_!r} is no trace format", hint=f"choose one of: {', '.join(FORMATS)}")
    views = [build_view(s) for s in inputs.snapshots]
    reports = inputs.reports if inputs.reports is not None else tuple(diagnose(s) for s in inputs.snapshots)
    layout = build_layout(inputs.snapshots, views)
    pings = pings_of(inputs.snapshots)
    to_reference = _node_clocks(pings, layout)
    events = inputs.events or events_of_snapshots(inputs.snapshots)
    events = narrow(events, inputs.job_id) if events else None
    owners = Owners(events, drivers_of(inputs.snapshots), to_reference) if events else None
    sources = _sources(inputs, views, reports, layout, events, owners)
    accumulator = Accumulator()
    plan = make_plan(sources, pings=pings, accumulator=accumulator, max_slices=max_slices, progress=progress)
    size = None
    if path is not None:
        maker = PerfettoWriter if format_ == "perfetto" else ChromeWriter
        with _written(path) as out:
            write_trace(plan, sources, maker(out, origin_ns=plan.origin_ns, descriptions=layout.descriptions), progress=progress)
        size = path.stat().st_size
    now_ns = max((int(s.taken_time_s * 1e9) for s in inputs.snapshots), default=0)
    if inputs.events is not None:
        now_ns = max(now_ns, int(inputs.events.read_time_s * 1e9))
    tables = accumulator.finish(
        now_ns or None,
        last_ns=plan.last_ns,
        queues=queue_times(events, owners) if events else None,
        gpu_of_rank=_gpus(views, layout),
        to_reference=plan.to_reference,
    )
    if events is not None and now_ns and (ended := last_progress_ns(events, owners)) is not None:
        tables = msgspec.structs.replace(tables, since_progress_s=(now_ns - ended[0]) / 1e9, last_progress=ended[1])
    return Timeline(plan, tables, path, size, (*inputs.gaps, *plan.gaps))


def _sources(
    inputs: Inputs, views: Sequence[View], reports: Sequence[Report], layout: Layout, events: TaskEvents | None, owners: Owners | None
) -> list[Source]:
    sources: list[Source] = []
    if events is not None:
        sources.append(ray_task_source(events, layout, owners))
        if not views:
            sources.append(_last_seen(events))
    if views:
        sources.append(snapshot_source(views, reports, layout, stuck_since(events, layout, owners)))
    sources += [make(layout) for make in inputs.others]
    return sources


def _last_seen(events: TaskEvents) -> Source:
    """Open slices reach to the trace's last moment: that is when somebody looked."""
    seen = Instant(int(events.read_time_s * 1e9), "task events read", "snapshot")
    return Held("moment of the reading", [Batch(Track((CLUSTER, "snapshots"), kind="instant"), [seen])])


def _node_clocks(pings: Mapping[str, Sequence[NodeClock]], layout: Layout) -> ToReference:
    found = align([], pings, [], {*layout.seen_nodes(), *pings})

    def to_reference(node: str | None, at_ns: int) -> int:
        alignment = found.get(wall_clock(layout.node(node)))
        return at_ns if alignment is None else alignment.to_reference(at_ns)

    return to_reference


def _gpus(views: Sequence[View], layout: Layout) -> dict[str, tuple[str, str]]:
    """The GPU that each process uses, where NVML tells its pids."""
    found: dict[str, tuple[str, str]] = {}
    for view in views:
        for node in view.snapshot.nodes:
            for gpu in node.gpus or ():
                for pid in gpu.pids:
                    found.setdefault(layout.process(node.name, pid).label, (node.name, str(gpu.index)))
    return found


@contextmanager
def _written(path: Path) -> Iterator[BinaryIO]:
    """A file that appears under its name only when it is complete."""
    with whole_file(path) as file:
        if path.suffix == ".gz":
            with gzip.GzipFile(filename="", fileobj=file, mode="wb", compresslevel=_GZIP_LEVEL, mtime=0) as packed:
                yield cast(BinaryIO, packed)
        else:
            yield file
