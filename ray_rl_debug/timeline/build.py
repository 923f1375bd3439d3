"""From sources to a trace: read once for clocks, tables and size, then write, aligned and within the cap."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

import msgspec

from ray_rl_debug.model.snapshot import Gap, NodeClock
from ray_rl_debug.timeline.accumulate import Accumulator
from ray_rl_debug.timeline.clocks import Alignment, align
from ray_rl_debug.timeline.layout import in_order
from ray_rl_debug.timeline.model import CLUSTER, Batch, Clock, Count, Instant, Item, SharedEnd, Source, Span, Track, wall_clock

MAX_SLICES = 3_000_000
"""Perfetto's UI holds a trace in the browser's memory: about 440 MB for a million slices."""
_UNALIGNED = Alignment("")


class Writer(Protocol):
    def declare(self, track: Track) -> None: ...
    def write(self, track: Track, items: Sequence[Item], offset_ns: int = 0) -> None: ...
    def close(self) -> None: ...


class TracePlan(msgspec.Struct, frozen=True):
    """What the first reading found: all that the second needs to write without holding anything."""

    tracks: tuple[Track, ...]
    """In the order they are shown."""
    alignments: dict[str, Alignment]
    origin_ns: int
    last_ns: int
    slices: int
    arrows: int
    counts: int
    instants: int
    dropped: int
    shortest_ns: int
    """Slices shorter than this are left out."""
    gaps: tuple[Gap, ...]
    sources: tuple[str, ...]

    def to_reference(self, clock: str, at_ns: int) -> int:
        """A moment of one clock in the reference clock."""
        return self.alignments.get(clock, _UNALIGNED).to_reference(at_ns)


def make_plan(
    sources: Sequence[Source],
    *,
    pings: Mapping[str, Sequence[NodeClock]],
    accumulator: Accumulator,
    max_slices: int = MAX_SLICES,
    progress: Callable[[str], None] = lambda _: None,
) -> TracePlan:
    """Read all sources once."""
    sizes: Counter[int] = Counter()
    numbers: Counter[str] = Counter()
    ranges: dict[str, tuple[int, int]] = {}
    tracks: dict[Track, None] = {}
    clocks: list[Clock] = []
    ends: list[SharedEnd] = []
    for source in sources:
        progress(f"reading {source.name}")
        for batch in source.batches():
            tracks.setdefault(batch.track)
            _count(batch, sizes, numbers, ranges)
            accumulator.add(batch)
        clocks += source.clocks()
        ends += source.shared_ends()
    alignments = align(clocks, pings, ends, _nodes(tracks, clocks))
    moments = [alignments.get(k, _UNALIGNED).to_reference(at) for k, both in ranges.items() for at in both]
    shortest, dropped = _threshold(sizes, max_slices)
    return TracePlan(
        tracks=tuple(in_order(list(tracks))),
        alignments=alignments,
        origin_ns=max(0, min(moments, default=0)),
        last_ns=max(moments, default=0),
        slices=sum(sizes.values()) - dropped,
        arrows=numbers["arrows"],
        counts=numbers["counts"],
        instants=numbers["instants"],
        dropped=dropped,
        shortest_ns=shortest,
        gaps=tuple(g for s in sources for g in s.gaps),
        sources=tuple(s.name for s in sources),
    )


def _nodes(tracks: Iterable[Track], clocks: Iterable[Clock]) -> set[str]:
    """Names of all nodes whose clocks are in use."""
    of_tracks = {t.clock.partition(":")[2] for t in tracks if t.clock.startswith(wall_clock(""))}
    return {n for n in (*of_tracks, *(c.node for c in clocks)) if n}


def write_trace(plan: TracePlan, sources: Sequence[Source], writer: Writer, *, progress: Callable[[str], None] = lambda _: None) -> None:
    """Read all sources again and write them."""
    used = {t.clock for t in plan.tracks}
    notes = Track((CLUSTER, "clocks and omissions"), kind="instant")
    for track in (*plan.tracks, notes):
        writer.declare(track)
    done = 0
    for source in sources:
        for batch in source.batches():
            alignment = plan.alignments.get(batch.track.clock, _UNALIGNED)
            items = batch.items if not plan.shortest_ns else [i for i in batch.items if _is_kept(i, plan.shortest_ns)]
            offset = alignment.offset_ns
            if alignment.drift_ppb:
                items, offset = [_shifted(i, alignment) for i in items], 0
            if items:
                writer.write(batch.track, items, offset)
            before, done = done, done + len(items)
            if done // 500_000 > before // 500_000:
                progress(f"{done:,} items written")
    writer.write(notes, list(_notes(plan, used)))
    writer.close()


def _notes(plan: TracePlan, used: set[str]) -> Iterator[Instant]:
    """One instant at the beginning per clock and per omission: whoever looks at the trace sees how far to trust it."""
    for key, a in sorted(plan.alignments.items()):
        if key in used:
            args = (("clock", key), ("method", a.method), ("offset_ms", a.offset_ns / 1e6 if a.bound_ns is not None else 0.0))
            bound = (("bound_ms", a.bound_ns / 1e6),) if a.bound_ns is not None else ()
            yield Instant(plan.origin_ns, f"clock {key}: {a.describe()}", "clock", (*args, *bound))
    if plan.dropped:
        yield Instant(plan.origin_ns, dropped_text(plan), "omission", (("dropped", plan.dropped), ("shorter_than_us", plan.shortest_ns / 1000)))
    for gap in plan.gaps:
        yield Instant(plan.origin_ns, f"{gap.where}: {gap.what}: {gap.reason}", "omission")


def dropped_text(plan: TracePlan) -> str:
    return f"{plan.dropped:,} slices shorter than {plan.shortest_ns / 1000:g} µs dropped of {plan.slices + plan.dropped:,}"


def _count(batch: Batch, sizes: Counter[int], numbers: Counter[str], ranges: dict[str, tuple[int, int]]) -> None:
    """Slices by the power of two of their length, arrows, and the first and last moment per clock."""
    if not batch.items:
        return
    first: int | None = None
    last = 0
    for item in batch.items:
        if isinstance(item, Span):
            start, end = item.start_ns, item.end_ns
            sizes[64 if end is None or item.flows_in or item.flows_out else max(0, end - start).bit_length()] += 1
            numbers["arrows"] += len(item.flows_in)
            last = max(last, start if end is None else end)
        else:
            start = item.at_ns
            numbers["counts" if isinstance(item, Count) else "instants"] += 1
            last = max(last, start)
        first = start if first is None or start < first else first
    known = ranges.get(batch.track.clock)
    assert first is not None
    ranges[batch.track.clock] = (first, last) if known is None else (min(first, known[0]), max(last, known[1]))


def _threshold(sizes: Counter[int], most: int) -> tuple[int, int]:
    """The shortest length that is kept so that at most so many slices remain, and how many are dropped; open ones always stay."""
    total = sum(sizes.values())
    dropped = 0
    for bits in range(64):
        if total - dropped <= most:
            return (1 << (bits - 1) if bits else 0), dropped
        dropped += sizes[bits]
    return 1 << 63, dropped


def _is_kept(item: Item, shortest_ns: int) -> bool:
    return not isinstance(item, Span) or item.end_ns is None or bool(item.flows_in or item.flows_out) or item.end_ns - item.start_ns >= shortest_ns


def _shifted(item: Item, alignment: Alignment) -> Item:
    if isinstance(item, Span):
        end = None if item.end_ns is None else alignment.to_reference(item.end_ns)
        return msgspec.structs.replace(item, start_ns=alignment.to_reference(item.start_ns), end_ns=end)
    return msgspec.structs.replace(item, at_ns=alignment.to_reference(item.at_ns))
