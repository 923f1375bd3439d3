"""Reads a Perfetto trace back with Perfetto's own protobuf classes: times, names and nesting as its importer would see them."""

from __future__ import annotations

import io
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace

from ray_rl_debug.timeline.model import Batch
from ray_rl_debug.timeline.perfetto import PerfettoWriter

INCREMENTAL, REALTIME = 64, 1


@dataclass
class Slice:
    """One slice as it was read back."""

    track: tuple[str, ...]
    name: str
    start_ns: int
    end_ns: int | None = None
    args: dict[str, Any] = field(default_factory=dict)
    flows_out: tuple[int, ...] = ()
    flows_in: tuple[int, ...] = ()
    stack: tuple[str, ...] = ()
    depth: int = 0


@dataclass
class ReadTrace:
    """All that a trace holds."""

    slices: list[Slice] = field(default_factory=list)
    instants: list[Slice] = field(default_factory=list)
    counts: list[tuple[tuple[str, ...], int, float]] = field(default_factory=list)
    tracks: dict[int, Any] = field(default_factory=dict)

    def path(self, uuid: int) -> tuple[str, ...]:
        track = self.tracks[uuid]
        return (*(self.path(track.parent_uuid) if track.parent_uuid else ()), track.name)

    def named(self, name: str) -> list[Slice]:
        return [s for s in self.slices if s.name == name]


def written(batches: Sequence[Batch], *, origin_ns: int = 1_000, offset_ns: int = 0) -> bytes:
    """The trace of some batches."""
    out = io.BytesIO()
    writer = PerfettoWriter(out, origin_ns=origin_ns)
    for batch in batches:
        writer.declare(batch.track)
    for batch in batches:
        writer.write(batch.track, batch.items, offset_ns)
    writer.close()
    return out.getvalue()


def read_back(data: bytes) -> ReadTrace:
    """Every packet, in file order; fails on what Perfetto would ignore or drop."""
    trace = Trace()
    trace.ParseFromString(data)
    found = ReadTrace()
    clock: dict[int, int] = {}
    default_track: dict[int, int] = {}
    names: dict[tuple[int, str, int], str] = {}
    open_slices: dict[int, list[Slice]] = defaultdict(list)
    for packet in trace.packet:
        sequence = packet.trusted_packet_sequence_id
        assert not packet.HasField("machine_id"), "Perfetto drops flows and tracks of other machines"
        if packet.HasField("track_descriptor"):
            descriptor = packet.track_descriptor
            assert not descriptor.HasField("process"), "a process has no parent in Perfetto"
            assert not descriptor.HasField("thread"), "a thread has no parent in Perfetto"
            assert descriptor.parent_uuid == 0 or descriptor.parent_uuid in found.tracks, "a parent must be known before its children"
            found.tracks[descriptor.uuid] = descriptor
        if packet.HasField("clock_snapshot"):
            for one in packet.clock_snapshot.clocks:
                if one.is_incremental:
                    clock[sequence] = next(c.timestamp for c in packet.clock_snapshot.clocks if not c.is_incremental)
        if packet.HasField("trace_packet_defaults"):
            default_track[sequence] = packet.trace_packet_defaults.track_event_defaults.track_uuid
        for kind in ("event_names", "event_categories", "debug_annotation_names"):
            for one in getattr(packet.interned_data, kind):
                names[(sequence, kind, one.iid)] = one.name
        if packet.HasField("track_event"):
            if packet.HasField("timestamp_clock_id") and packet.timestamp_clock_id == REALTIME:
                at = packet.timestamp
            else:
                at = clock[sequence] = clock[sequence] + packet.timestamp
            _event(packet.track_event, at, sequence, default_track[sequence], found, open_slices, names)
    return found


def _event(
    event: Any, at: int, sequence: int, uuid: int, found: ReadTrace, open_slices: dict[int, list[Slice]], names: dict[tuple[int, str, int], str]
) -> None:
    if event.type == event.TYPE_COUNTER:
        found.counts.append((found.path(uuid), at, event.double_counter_value))
        return
    if event.type == event.TYPE_SLICE_END:
        open_slices[uuid].pop().end_ns = at
        return
    read = Slice(found.path(uuid), names[(sequence, "event_names", event.name_iid)], at, depth=len(open_slices[uuid]))
    for one in event.debug_annotations:
        kind = one.WhichOneof("value")
        read.args[names[(sequence, "debug_annotation_names", one.name_iid)]] = getattr(one, kind)
    read.flows_out, read.flows_in = tuple(event.flow_ids), tuple(event.terminating_flow_ids)
    read.stack = tuple(f"{f.function_name} {f.source_file}:{f.line_number}" for f in event.callstack.frames)
    if event.type == event.TYPE_INSTANT:
        found.instants.append(read)
        return
    found.slices.append(read)
    open_slices[uuid].append(read)
