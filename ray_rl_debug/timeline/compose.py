"""Puts a timeline together: snapshots, task events and other sources in, a trace file and tables out."""

from __future__ import annotations

import gzip
import os
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

import msgspec

from ray_rl_debug.analyze.view import View, build_view
from ray_rl_debug.diagnose import diagnose
from ray_rl_debug.errors import OutputError, UsageError
from ray_rl_debug.ray_state.task_events import TaskEvent, TaskEvents
from ray_rl_debug.report import Report
from ray_rl_debug.snapshot import Gap, NodeClock, Snapshot
from ray_rl_debug.timeline.accumulate import Accumulator
from ray_rl_debug.timeline.build import MAX_SLICES, Plan, make_plan, write_trace
from ray_rl_debug.timeline.chrome import ChromeWriter
from ray_rl_debug.timeline.layout import Layout, build_layout
from ray_rl_debug.timeline.model import Source
from ray_rl_debug.timeline.perfetto import PerfettoWriter
from ray_rl_debug.timeline.sources.ray_tasks import last_progress_ns, narrow, queue_times, ray_task_source
from ray_rl_debug.timeline.sources.snapshots import snapshot_source
from ray_rl_debug.timeline.tables import Tables

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

    plan: Plan
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
    events = inputs.events or _events_of_snapshots(inputs.snapshots)
    sources = _sources(inputs, views, reports, layout, narrow(events, inputs.job_id) if events else None)
    accumulator = Accumulator()
    plan = make_plan(
        sources,
        pings=_pings(inputs.snapshots),
        nodes=layout.seen_nodes(),
        accumulator=accumulator,
        max_slices=max_slices,
        progress=progress,
    )
    size = None
    if path is not None:
        maker = PerfettoWriter if format_ == "perfetto" else ChromeWriter
        with _written(path) as out:
            write_trace(plan, sources, maker(out, origin_ns=plan.origin_ns, descriptions=layout.descriptions), progress=progress)
        size = path.stat().st_size
    now_ns = max((int(s.taken_time_s * 1e9) for s in inputs.snapshots), default=0)
    if inputs.events is not None:
        now_ns = max(now_ns, int(inputs.events.read_time_s * 1e9))
    queues = queue_times(narrow(events, inputs.job_id)) if events else None
    tables = accumulator.finish(now_ns or None, last_ns=plan.last_ns, queues=queues, gpu_of_rank=_gpus(views, layout), to_reference=plan.to_reference)
    if events is not None and now_ns and (ended := last_progress_ns(narrow(events, inputs.job_id))) is not None:
        tables = msgspec.structs.replace(tables, since_progress_s=(now_ns - ended[0]) / 1e9, last_progress=ended[1])
    return Timeline(plan, tables, path, size, (*inputs.gaps, *plan.gaps))


def _sources(inputs: Inputs, views: Sequence[View], reports: Sequence[Report], layout: Layout, events: TaskEvents | None) -> list[Source]:
    sources: list[Source] = []
    if events is not None:
        sources.append(ray_task_source(events, layout))
    if views:
        sources.append(snapshot_source(views, reports, layout, _since(events, layout)))
    sources += [make(layout) for make in inputs.others]
    return sources


def _since(events: TaskEvents | None, layout: Layout) -> dict[tuple[str, int], int]:
    """When the unfinished task of each process began; of several the latest."""
    found: dict[tuple[str, int], int] = {}
    for event in events.events if events else ():
        start, node = event.times_ns.get("RUNNING"), layout.node(event.node_id)
        if start is None or node is None or event.pid is None or event.kind == "DRIVER_TASK" or {"FINISHED", "FAILED"} & event.times_ns.keys():
            continue
        found[(node, event.pid)] = max(start, found.get((node, event.pid), 0))
    return found


def _events_of_snapshots(snapshots: Sequence[Snapshot]) -> TaskEvents | None:
    """The unfinished tasks that snapshots keep, when the whole table was not saved."""
    found: dict[tuple[str, int], TaskEvent] = {}
    for snapshot in sorted(snapshots, key=lambda s: s.taken_time_s):
        for task in snapshot.ray.tasks if snapshot.ray else ():
            found[(task.task_id, task.attempt)] = TaskEvent(
                task_id=task.task_id,
                attempt=task.attempt,
                name=task.name,
                kind=task.kind,
                job_id=task.job_id,
                parent_task_id=task.parent_task_id,
                actor_id=task.actor_id,
                node_id=task.node_id,
                worker_id=task.worker_id,
                pid=task.pid,
                times_ns={k: int(v * 1e9) for k, v in task.state_times_s.items()},
            )
    if not found:
        return None
    return TaskEvents(read_time_s=max(s.taken_time_s for s in snapshots), events=tuple(found.values()))


def _pings(snapshots: Sequence[Snapshot]) -> Mapping[str, Sequence[NodeClock]]:
    found: dict[str, list[NodeClock]] = defaultdict(list)
    for snapshot in snapshots:
        for clock in snapshot.clocks:
            found[clock.node].append(clock)
    return found


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
    temporary: str | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False, buffering=1 << 20) as f:
            temporary = f.name
            if path.suffix == ".gz":
                with gzip.GzipFile(filename="", fileobj=f, mode="wb", compresslevel=_GZIP_LEVEL, mtime=0) as packed:
                    yield cast(BinaryIO, packed)
            else:
                yield cast(BinaryIO, f)
        os.replace(temporary, path)
        temporary = None
    except OSError as e:
        raise OutputError(f"cannot write {path}: {e.strerror or e}") from e
    finally:
        if temporary is not None and os.path.exists(temporary):
            os.unlink(temporary)
