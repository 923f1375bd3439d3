"""Writes a Perfetto trace as a stream: names interned, times as differences, memory independent of the length of the run.

Every lane of a track is a packet sequence of its own, so times within it only grow and need one to four bytes. Items that do not nest go to
another lane of the same track, because Perfetto ends the innermost open slice, whichever was meant. One clock for everything: the reader's
wall time (``machine_id`` and several clocks make Perfetto drop flows and tracks without a word).
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import BinaryIO, TypeAlias

from ray_rl_debug.timeline.encode import LAST as _LAST
from ray_rl_debug.timeline.encode import MORE as _MORE
from ray_rl_debug.timeline.encode import double, fixed64, nested, number, text, varint
from ray_rl_debug.timeline.model import Args, Count, Frame, Instant, Item, Span, Track

_REALTIME, _BOOTTIME, _INCREMENTAL = 1, 6, 64
_EXPLICIT_ORDER, _NEVER_MERGE, _MERGE_BY_KEY = 3, 2, 3
_OPEN = 1 << 63
_MAX_DEPTH = 200
"""Perfetto drops slices below depth 255."""
_MAX_BODIES = 100_000
_MAX_TEXT = 2000
_Key: TypeAlias = tuple[str, str, Args]
_START = attrgetter("start_ns")
_AT = attrgetter("at_ns")


class PerfettoWriter:
    """One trace being written. Call `declare` for tracks in the order they shall be shown, then `write` in any order, then `close`."""

    def __init__(self, out: BinaryIO, *, origin_ns: int, descriptions: Mapping[tuple[str, ...], str] | None = None) -> None:
        """
        Args:
            out: Where the bytes go; not closed.
            origin_ns: Any moment of the run in Unix time: ties the trace to the calendar.
            descriptions: Texts for groups of tracks, by path.
        """
        self._out = out
        self._origin_ns = origin_ns
        self._descriptions = descriptions or {}
        self._last_uuid = 0
        self._groups: dict[tuple[str, ...], int] = {}
        self._children: dict[tuple[str, ...], int] = {}
        self._tracks: dict[Track, _Lanes] = {}
        self._names = _Names()
        clocks = b"".join(nested(1, number(1, c) + number(2, origin_ns)) for c in (_REALTIME, _BOOTTIME))
        self._packet(nested(6, clocks + number(2, _REALTIME)) + number(10, 1) + number(13, 1))
        self._packet(nested(60, number(1, 0) + number(11, _EXPLICIT_ORDER)) + number(10, 1))

    def declare(self, track: Track) -> None:
        """Make the track's row; rows are shown in the order of their declaration."""
        if track not in self._tracks:
            self._tracks[track] = _Lanes(track, self._group(track.path[:-1]), self._next_rank(track.path[:-1]))

    def write(self, track: Track, items: Sequence[Item], offset_ns: int = 0) -> None:
        """Write items of one track; of a track of kind ``async`` those of one group (they nest among themselves, not with others).

        Args:
            offset_ns: Added to every time: what aligns the track's clock.
        """
        self.declare(track)
        lanes = self._tracks[track]
        if track.kind == "counter":
            self._write_counts(lanes, [i for i in items if isinstance(i, Count)], offset_ns)
        elif track.kind == "instant":
            self._write_instants(lanes, [i for i in items if isinstance(i, Instant)], offset_ns)
        elif track.kind == "async":
            self._write_group(lanes, _in_order([i for i in items if isinstance(i, Span)]), offset_ns)
        else:
            self._write_spans(lanes, _in_order([i for i in items if isinstance(i, Span)]), offset_ns)

    def close(self) -> None:
        """End what has an end; what has none stays open."""
        for lanes in self._tracks.values():
            for lane in lanes.all:
                out: list[bytes] = []
                last = lane.last_ns
                while lane.ends:
                    end = lane.ends.pop()
                    if end < _OPEN:
                        out.append(_end(end - last, lane))
                        last = end
                self._out.write(b"".join(out))

    def _write_spans(self, lanes: _Lanes, spans: list[Span], offset_ns: int) -> None:
        index = 0
        while spans:
            if index == len(lanes.all):
                self._new_lane(lanes, spans[0].start_ns + offset_ns)
            spans = self._fill(lanes.all[index], spans, offset_ns)
            index += 1

    def _write_group(self, lanes: _Lanes, spans: list[Span], offset_ns: int) -> None:
        while spans:
            start = spans[0].start_ns + offset_ns
            if lanes.free and lanes.free[0][0] <= start:
                _, index = heapq.heappop(lanes.free)
            else:
                index = len(lanes.all)
                self._new_lane(lanes, start)
            spans = self._fill(lanes.all[index], spans, offset_ns)
            lane = lanes.all[index]
            heapq.heappush(lanes.free, (max(lane.ends[0], lane.last_ns) if lane.ends else lane.last_ns, index))

    def _fill(self, lane: _Lane, spans: list[Span], offset_ns: int) -> list[Span]:
        """Write those of the spans that nest on this lane; give back the others."""
        rest: list[Span] = []
        ends, last, end_tail = lane.ends, lane.last_ns, lane.end_tail
        last_bits, more_bits, heads = _LAST, _MORE, _HEADS
        out: list[bytes] = []
        append = out.append
        end_length = len(end_tail) + 1
        innermost = ends.pop() if ends else -1
        seen, tail, tail_length = lane.seen, lane.tail, len(lane.tail) + 1
        bodies = self._names.begins
        for span in spans:
            start = span.start_ns + offset_ns
            while 0 <= innermost <= start:
                gap = innermost - last
                delta = last_bits[gap] if gap <= 16383 else more_bits[gap & 16383] + last_bits[gap >> 14] if gap < 0x1000_0000 else varint(gap)
                append(heads[len(delta) + end_length] + delta + end_tail)
                last = innermost
                innermost = ends.pop() if ends else -1
            end_ns = span.end_ns
            end = _OPEN if end_ns is None else end_ns + offset_ns
            if start < last or (innermost >= 0 and (end > innermost or len(ends) >= _MAX_DEPTH)):
                rest.append(span)
                continue
            key = (span.name, span.category, span.args)
            event, names = bodies[key] if key in bodies else self._names.begin(key)
            if names not in seen:
                append(self._names.tell(names, lane))
            if span.flows_out or span.flows_in or span.stack:
                event = _with_extras(event, span)
            gap = start - last
            delta = last_bits[gap] if gap <= 16383 else more_bits[gap & 16383] + last_bits[gap >> 14] if gap < 0x1000_0000 else varint(gap)
            length = len(delta) + len(event) + tail_length
            append((heads[length] if length < 128 else _head(length)) + delta + event + tail)
            last = start
            if innermost >= 0:
                ends.append(innermost)
            innermost = end if end > start else start
        if innermost >= 0:
            ends.append(innermost)
        lane.last_ns = last
        self._out.write(b"".join(out))
        return rest

    def _write_instants(self, lanes: _Lanes, items: list[Instant], offset_ns: int) -> None:
        items.sort(key=_AT)
        out: list[bytes] = []
        for item in items:
            at = item.at_ns + offset_ns
            lane = lanes.all[0] if lanes.all else self._new_lane(lanes, at)
            event, names = self._names.event(b"\x48\x03", (item.name, item.category, item.args))
            if names not in lane.seen:
                out.append(self._names.tell(names, lane))
            if item.flows_out or item.flows_in or item.stack:
                event = _with_extras(event, item)
            out.append(_event(at, event, lane))
        self._out.write(b"".join(out))

    def _write_counts(self, lanes: _Lanes, items: list[Count], offset_ns: int) -> None:
        items.sort(key=_AT)
        out: list[bytes] = []
        for item in items:
            at = item.at_ns + offset_ns
            lane = lanes.all[0] if lanes.all else self._new_lane(lanes, at)
            out.append(_event(at, nested(11, b"\x48\x04" + double(44, item.value)), lane))
        self._out.write(b"".join(out))

    def _new_lane(self, lanes: _Lanes, start_ns: int) -> _Lane:
        track = lanes.track
        uuid = self._uuid()
        if not lanes.all:
            lanes.key = uuid
        described = number(1, uuid) + number(5, lanes.parent) + text(2, track.path[-1]) + number(12, lanes.rank)
        if track.kind == "counter":
            unit = text(6, track.unit) + text(7, track.unit) if track.unit else b""
            described += nested(8, unit) + number(15, _NEVER_MERGE)
        else:
            described += number(15, _MERGE_BY_KEY) + number(17, lanes.key)
        about = "; ".join(x for x in (track.description, track.origin) if x)
        if about:
            described += text(14, about[:_MAX_TEXT])
        self._packet(nested(60, described) + number(10, 1))
        lane = _Lane(uuid + 1, start_ns)
        clocks = nested(1, number(1, _INCREMENTAL) + number(2, 0) + number(3, 1)) + nested(1, number(1, _BOOTTIME) + number(2, start_ns))
        defaults = number(58, _INCREMENTAL) + nested(11, number(11, uuid))
        self._packet(nested(6, clocks) + lane.sequence + number(13, 1) + nested(59, defaults))
        lanes.all.append(lane)
        return lane

    def _group(self, path: tuple[str, ...]) -> int:
        if not path:
            return 0
        found = self._groups.get(path)
        if found is None:
            parent = self._group(path[:-1])
            found = self._groups[path] = self._uuid()
            described = number(1, found) + text(2, path[-1]) + number(11, _EXPLICIT_ORDER) + number(12, self._next_rank(path[:-1]))
            described += number(15, _NEVER_MERGE)
            if parent:
                described += number(5, parent)
            if about := self._descriptions.get(path):
                described += text(14, about[:_MAX_TEXT])
            self._packet(nested(60, described) + number(10, 1))
        return found

    def _next_rank(self, path: tuple[str, ...]) -> int:
        rank = self._children.get(path, 0)
        self._children[path] = rank + 1
        return rank

    def _uuid(self) -> int:
        self._last_uuid += 1
        return self._last_uuid

    def _packet(self, body: bytes) -> None:
        self._out.write(nested(1, body))


class _Lane:
    """One packet sequence: a row in which items nest."""

    __slots__ = ("end_tail", "ends", "heard", "last_ns", "seen", "sequence", "tail")

    def __init__(self, sequence_id: int, start_ns: int) -> None:
        self.sequence = number(10, sequence_id)
        self.tail = self.sequence + b"\x68\x02"
        self.end_tail = b"\x5a\x02\x48\x02" + self.tail
        self.last_ns = start_ns
        self.ends: list[int] = []
        self.heard: set[int] = set()
        """Interned names that this sequence has been told."""
        self.seen: set[int] = set()
        """Sets of names of which all have been told."""


class _Lanes:
    """The lanes of one track."""

    __slots__ = ("all", "free", "key", "parent", "rank", "track")

    def __init__(self, track: Track, parent: int, rank: int) -> None:
        self.track = track
        self.parent = parent
        self.rank = rank
        self.key = 0
        self.all: list[_Lane] = []
        self.free: list[tuple[int, int]] = []


class _Names:
    """Interned names, with the same number in every sequence, and the encoded form of events that come often."""

    def __init__(self) -> None:
        self.begins: dict[_Key, tuple[bytes, int]] = {}
        self._ids: dict[tuple[int, str], int] = {}
        self._sets: dict[tuple[tuple[int, str], ...], int] = {}
        self._blobs: list[tuple[tuple[int, bytes], ...]] = []

    def begin(self, key: _Key) -> tuple[bytes, int]:
        """The beginning of a slice, without its time, and the set of names it uses."""
        if len(self.begins) >= _MAX_BODIES:
            self.begins.clear()
        found = self.begins[key] = self.event(b"\x48\x01", key)
        return found

    def event(self, type_: bytes, key: _Key) -> tuple[bytes, int]:
        """An event of any type, without its time, and the set of names it uses."""
        name, category, args = key
        names = [(2, name[:_MAX_TEXT])]
        parts = [type_, b"\x50", varint(self._id(*names[0]))]
        if category:
            names.append((1, category))
            parts += (b"\x18", varint(self._id(1, category)))
        for label, value in args:
            names.append((3, label))
            parts.append(nested(4, b"\x08" + varint(self._id(3, label)) + _value(value)))
        wanted = tuple(names)
        number_ = self._sets.get(wanted)
        if number_ is None:
            number_ = self._sets[wanted] = len(self._blobs)
            self._blobs.append(tuple((n := self._id(*w), nested(w[0], number(1, n) + text(2, w[1]))) for w in wanted))
        return nested(11, b"".join(parts)), number_

    def tell(self, names: int, lane: _Lane) -> bytes:
        """A packet that tells the lane's sequence those names of a set that it has not heard yet; may be empty."""
        missing = [blob for n, blob in self._blobs[names] if n not in lane.heard]
        lane.heard.update(n for n, _ in self._blobs[names])
        lane.seen.add(names)
        return nested(1, nested(12, b"".join(missing)) + lane.tail) if missing else b""

    def _id(self, field: int, name: str) -> int:
        return self._ids.setdefault((field, name), len(self._ids) + 1)


def _value(value: str | int | float | bool) -> bytes:
    if isinstance(value, bool):
        return number(2, value)
    if isinstance(value, int):
        return number(4, value) if -(1 << 63) <= value < 1 << 63 else text(6, str(value))
    if isinstance(value, float):
        return double(5, value)
    return text(6, value[:_MAX_TEXT])


def _head(length: int) -> bytes:
    """How a packet of so many bytes begins: its field, its length, and the field of the time."""
    return b"\x0a" + varint(length) + b"\x40"


_HEADS = tuple(_head(length) for length in range(128))


def _with_extras(event: bytes, item: Span | Instant) -> bytes:
    """The event with its arrows and its stack.

    They must stand in the same message: Perfetto's reader takes the last of two parts instead of merging them.
    """
    begin = 1
    while event[begin] & 128:
        begin += 1
    parts = [fixed64(47, flow) for flow in item.flows_out]
    parts += (fixed64(48, flow) for flow in item.flows_in)
    if item.stack:
        parts.append(nested(55, b"".join(nested(1, _frame(f)) for f in item.stack)))
    return nested(11, event[begin + 1 :] + b"".join(parts))


def _frame(frame: Frame) -> bytes:
    return text(1, frame.function) + (text(2, frame.file) if frame.file else b"") + (number(3, frame.line) if frame.line else b"")


def _event(at_ns: int, event: bytes, lane: _Lane) -> bytes:
    """One event; one that comes late carries its full time."""
    if at_ns >= lane.last_ns:
        head = number(8, at_ns - lane.last_ns)
        lane.last_ns = at_ns
    else:
        head = number(8, at_ns) + number(58, _REALTIME)
    return nested(1, head + event + lane.tail)


def _end(delta_ns: int, lane: _Lane) -> bytes:
    return nested(1, number(8, delta_ns) + lane.end_tail)


def _in_order(spans: list[Span]) -> list[Span]:
    """By start; of those with one start the longest first, so that it becomes the outer one."""
    starts = [s.start_ns for s in spans]
    if len(set(starts)) == len(starts):
        spans.sort(key=_START)
    else:
        spans.sort(key=lambda s: (s.start_ns, -(_OPEN if s.end_ns is None else s.end_ns)))
    return spans
