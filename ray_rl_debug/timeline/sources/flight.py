"""Flight Recorder dumps as rows of collectives: when each was enqueued, when it ended, and those that never did."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from ray_rl_debug.model.snapshot import CollectiveEntry, FlightRecord
from ray_rl_debug.timeline.layout import Layout, TrackPlace
from ray_rl_debug.timeline.model import Args, Batch, Frame, Held, Instant, Item, SharedEnd, Span, Track, wall_clock

ORIGIN = "Flight Recorder"
ENDS_TOGETHER = ("all_reduce", "allreduce", "all_gather", "allgather", "reduce_scatter", "reducescatter", "all_to_all", "alltoall", "barrier")
"""Nobody leaves one of these before all others have come."""


def flight_source(name: str, records: Sequence[FlightRecord], layout: Layout) -> Held:
    """The collectives of all records."""
    batches: list[Batch] = []
    ends: list[SharedEnd] = []
    for record in records:
        place = place_of(record, layout)
        batches += flight_batches(record, place)
        ends += flight_ends(record, place)
    return Held(name, batches, ends=ends)


def place_of(record: FlightRecord, layout: Layout) -> TrackPlace:
    """Where the record's process stands; by its pid, else by its rank alone, with a clock of its own: ranks may be on different nodes."""
    label = f"rank {record.rank}" if record.rank is not None else "rank unknown"
    place = layout.process(None, record.pid, role="collectives", label=label)
    return place if place.node is not None else msgspec.structs.replace(place, clock=wall_clock(f"node of {label}"))


def flight_batches(record: FlightRecord, place: TrackPlace) -> Iterator[Batch]:
    """One row per process group; what is not known to have ended at some moment is an instant, what has not ended is open."""
    rows: dict[str, list[Item]] = defaultdict(list)
    for entry in record.entries:
        if entry.created_time_s is None:
            continue
        group = record.group_descriptions.get(entry.group) or entry.group
        rows[group].append(_item(entry, record.groups))
    for group, items in rows.items():
        spans = [i for i in items if isinstance(i, Span)]
        instants = [i for i in items if isinstance(i, Instant)]
        if spans:
            yield Batch(Track((*place.path, f"collectives {group}"), place.clock, "span", ORIGIN), spans)
        if instants:
            yield Batch(Track((*place.path, f"collectives enqueued {group}"), place.clock, "instant", ORIGIN), instants)


def flight_ends(record: FlightRecord, place: TrackPlace) -> Iterator[SharedEnd]:
    """Ends that all members share."""
    for entry in record.entries:
        op = entry.op.lower().rsplit(":", 1)[-1].lstrip("_")
        if entry.completed_time_s is not None and not entry.is_p2p and op.startswith(ENDS_TOGETHER):
            members = ",".join(map(str, record.groups.get(entry.group, ())))
            yield SharedEnd(place.clock, f"{entry.group} {members} {op} {entry.seq}", round(entry.completed_time_s * 1e9))


def _item(entry: CollectiveEntry, groups: Mapping[str, tuple[int, ...]]) -> Span | Instant:
    name = f"{entry.op.rsplit(':', 1)[-1]} #{entry.seq}"
    args: list[tuple[str, str | int | float | bool]] = [("op", entry.op), ("seq", entry.seq), ("state", entry.state), ("group", entry.group)]
    if members := groups.get(entry.group):
        args.append(("members", len(members)))
    if entry.input_sizes:
        args.append(("sizes", " ".join("x".join(map(str, s)) for s in entry.input_sizes[:8])))
    frames = tuple(Frame(f.function, f.file or "", f.line) for f in reversed(entry.frames))
    assert entry.created_time_s is not None
    start = round((entry.started_time_s or entry.created_time_s) * 1e9)
    shown: Args = tuple(args)
    if entry.completed_time_s is not None:
        return Span(start, round(entry.completed_time_s * 1e9), name, "collective", shown, stack=frames)
    if entry.state == "completed" or entry.retired:
        return Instant(start, name, "collective", shown, stack=frames)
    return Span(start, None, name, "collective", shown, stack=frames)
