"""The timeline's writer beside Perfetto's own Python builders: slices a second on one core, bytes a slice, memory; and Ray tasks to a trace.

Run: ``python benchmarks/timeline_writer.py [--ranks 1000] [--slices 1000]``; needs the package ``perfetto``. Ends with status 1 if an aim is missed.
Every row is a process of its own, so that its peak memory is its own. Seconds are CPU seconds, so a busy machine does not matter much;
making the data is not counted.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from ray_rl_debug.timeline.model import Span, Track

T0 = 1_790_000_000_000_000_000
PHASES = ("rollout", "reward", "old_log_prob", "ref_log_prob", "values", "adv", "update_critic", "update_actor", "update_weights", "step")
AIM_SLICES_PER_S = 400_000
AIM_BYTES = 45.0
AIM_MEMORY_MB = 50.0
AIM_TASKS_S = 5.0
TASKS = 50_000
LONGER = 5
"""The run of the last row is so many times as long: its memory must be the same."""


def spans(rank: int, count: int) -> list[Span]:
    """One rank's slices: ten phases a step, with a category and the number of the step."""
    found, at = [], T0 + rank * 1_000
    for i in range(count):
        length = 1_000_000 + (rank * 7919 + i * 104_729) % 3_000_000
        found.append(Span(at, at + length, PHASES[i % 10], "rl", (("step", i // 10),)))
        at += length + 1_000
    return found


def ours(out: BinaryIO, ranks: int, slices: int) -> float:
    """Our writer."""
    from ray_rl_debug.timeline.perfetto import PerfettoWriter

    taken = 0.0
    writer = PerfettoWriter(out, origin_ns=T0)
    for rank in range(ranks):
        track = Track(("cluster", f"node{rank // 8}", "actor", f"actor/{rank}", "phase"))
        for batch in (spans(rank, slices)[k : k + 4_000] for k in range(0, slices, 4_000)):
            began = time.process_time()
            writer.write(track, batch)
            taken += time.process_time() - began
    began = time.process_time()
    writer.close()
    return taken + time.process_time() - began


def theirs(out: BinaryIO, ranks: int, slices: int, *, is_streaming: bool) -> float:
    """Perfetto's own builders, used as their documentation shows."""
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TrackEvent
    from perfetto.trace_builder.proto_builder import StreamingTraceProtoBuilder, TraceProtoBuilder

    taken = 0.0
    builder = StreamingTraceProtoBuilder(out) if is_streaming else TraceProtoBuilder()

    def packet(fill: Callable[..., None]) -> None:
        if is_streaming:
            made = builder.create_packet()
            fill(made)
            builder.write_packet(made)
        else:
            fill(builder.add_packet())

    for rank in range(ranks):
        made = spans(rank, slices)
        began = time.process_time()

        def describe(p: object, rank: int = rank) -> None:
            p.track_descriptor.uuid = rank + 1  # type: ignore[attr-defined]
            p.track_descriptor.name = f"actor/{rank}"  # type: ignore[attr-defined]

        packet(describe)
        for span in made:

            def begin(p: object, span: Span = span, rank: int = rank) -> None:
                p.timestamp = span.start_ns  # type: ignore[attr-defined]
                p.trusted_packet_sequence_id = 1  # type: ignore[attr-defined]
                event = p.track_event  # type: ignore[attr-defined]
                event.type, event.track_uuid, event.name = TrackEvent.TYPE_SLICE_BEGIN, rank + 1, span.name
                event.categories.append(span.category)
                note = event.debug_annotations.add()
                note.name, note.int_value = "step", span.args[0][1]

            def end(p: object, span: Span = span, rank: int = rank) -> None:
                p.timestamp = span.end_ns  # type: ignore[attr-defined]
                p.trusted_packet_sequence_id = 1  # type: ignore[attr-defined]
                p.track_event.type, p.track_event.track_uuid = TrackEvent.TYPE_SLICE_END, rank + 1  # type: ignore[attr-defined]

            packet(begin)
            packet(end)
        taken += time.process_time() - began
    if not is_streaming:
        began = time.process_time()
        out.write(builder.serialize())
        taken += time.process_time() - began
    return taken


def tasks(out: Path, count: int) -> float:
    """Ray's task events, as its table holds them, to a trace and the tables."""
    from ray_rl_debug.ray_state.task_events import TaskEvent, TaskEvents
    from ray_rl_debug.timeline.compose import Inputs, make_timeline

    def events() -> Iterator[TaskEvent]:
        yield TaskEvent(task_id="driver", name="driver", kind="DRIVER_TASK", job_id="01", node_id="a" * 56, pid=1, times_ns={"RUNNING": T0})
        for i in range(count):
            at = T0 + i * 3_000_000
            times = {"PENDING_ARGS_AVAIL": at, "SUBMITTED_TO_WORKER": at + 500_000, "RUNNING": at + 1_000_000, "FINISHED": at + 40_000_000 + i % 7}
            name = ("generate_sequences", "compute_log_prob", "update_actor", "update_weights")[i // 64 % 4]
            yield TaskEvent(
                task_id=f"{i:048x}",
                name=f"WorkerDict.{name}",
                kind="ACTOR_TASK",
                job_id="01",
                parent_task_id="driver",
                actor_id=f"{i % 64:032x}",
                node_id=f"{i % 64 // 8:056x}",
                pid=1000 + i % 64,
                times_ns=times if i != count - 1 else {k: v for k, v in times.items() if k != "FINISHED"},
            )

    held = TaskEvents(read_time_s=(T0 + count * 3_000_000) / 1e9 + 60, events=tuple(events()))
    began = time.process_time()
    make_timeline(Inputs(events=held), out)
    return time.process_time() - began


def row(kind: str, ranks: int, slices: int) -> dict[str, float]:
    """One measurement, in this process."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.pftrace"
        if kind == "tasks":
            taken = tasks(path, slices)
        else:
            with path.open("wb") as out:
                taken = ours(out, ranks, slices) if kind == "ours" else theirs(out, ranks, slices, is_streaming=kind == "streaming")
        size = path.stat().st_size
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": taken, "count": slices if kind == "tasks" else ranks * slices, "bytes": size, "peak_mb": peak, "start_mb": before}


def measured(kind: str, ranks: int, slices: int) -> dict[str, float]:
    """One measurement, in a process of its own."""
    argv = [sys.executable, __file__, "--row", kind, "--ranks", str(ranks), "--slices", str(slices)]
    found: dict[str, float] = json.loads(subprocess.run(argv, check=True, capture_output=True, text=True).stdout)
    return found


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=1000)
    parser.add_argument("--slices", type=int, default=1000)
    parser.add_argument("--row", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.row:
        print(json.dumps(row(arguments.row, arguments.ranks, arguments.slices)))
        return 0
    rows = [
        ("this package", measured("ours", arguments.ranks, arguments.slices)),
        (f"the same, {LONGER} times as long", measured("ours", arguments.ranks, arguments.slices * LONGER)),
        ("perfetto StreamingTraceProtoBuilder", measured("streaming", arguments.ranks, arguments.slices)),
        ("perfetto TraceProtoBuilder", measured("builder", arguments.ranks, arguments.slices)),
    ]
    print(f"{'writer':36} {'slices':>10} {'CPU s':>7} {'slices/s':>10} {'bytes/slice':>12} {'peak MB':>8} {'of it Python':>13}")
    for name, r in rows:
        speed = r["count"] / r["seconds"]
        sizes = f"{r['bytes'] / r['count']:12.1f} {r['peak_mb']:8.0f} {r['start_mb']:13.0f}"
        print(f"{name:36} {r['count']:10,.0f} {r['seconds']:7.2f} {speed:10,.0f} {sizes}")
    of_tasks = measured("tasks", 0, TASKS)
    print(f"{TASKS:,} Ray tasks to a trace: {of_tasks['seconds']:.2f} CPU s")
    own, longer = rows[0][1], rows[1][1]
    checks = (
        ("slices a second", own["count"] / own["seconds"], AIM_SLICES_PER_S, ">="),
        ("bytes a slice", own["bytes"] / own["count"], AIM_BYTES, "<="),
        ("peak MB of the long run", longer["peak_mb"], AIM_MEMORY_MB, "<="),
        ("seconds for the tasks", of_tasks["seconds"], AIM_TASKS_S, "<="),
    )
    missed = 0
    for name, found, aim, sign in checks:
        is_met = found >= aim if sign == ">=" else found <= aim
        missed += not is_met
        print(f"{'met   ' if is_met else 'MISSED'} {name}: {found:,.1f} {sign} {aim:,.0f}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
