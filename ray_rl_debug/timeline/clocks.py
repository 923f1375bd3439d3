"""Bringing clocks together: what is added to each clock's times to get the reference clock, how far off that can be, and how it is known.

Wall clocks of nodes come from pings through the nodes' agents. Clocks that count from an unwritten origin get the middle of the span in which
the origin must lie, and are tied to each other by the ends of shared events. What cannot be aligned says so and is not shifted.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ray_rl_debug.model.snapshot import NodeClock
from ray_rl_debug.timeline.model import WALL, Clock, SharedEnd, wall_clock

ONLY_NODE = "the only node"
END_JITTER_NS = 100_000
"""Ranks leave one collective within some tens of microseconds of each other; more is in the spread of the events themselves."""
MIN_SHARED = 2
"""One shared event tells an offset, but not how good it is; its bound is then unknown."""


class Alignment(msgspec.Struct, frozen=True):
    """What is known of one clock against the reference."""

    clock: str
    offset_ns: int = 0
    """Added to the clock's times."""
    bound_ns: int | None = None
    """The offset is right within this much; None: not known."""
    method: str = "unaligned"
    drift_ppb: int = 0
    """Nanoseconds the clock loses per second against the reference."""
    at_ns: int = 0
    """Time of the clock at which `offset_ns` holds."""

    @property
    def is_aligned(self) -> bool:
        return self.bound_ns is not None

    def to_reference(self, at_ns: int) -> int:
        return at_ns + self.offset_ns + (at_ns - self.at_ns) * self.drift_ppb // 1_000_000_000

    def describe(self) -> str:
        if self.bound_ns is None:
            return f"{self.method}: shown as recorded" if self.offset_ns == 0 else f"{self.method}, error unknown"
        return f"{self.method}, within {_show(self.bound_ns)}"


def _show(ns: int) -> str:
    if ns >= 1_000_000_000:
        return f"{ns / 1e9:.1f} s"
    return f"{ns / 1e6:.1f} ms" if ns >= 1_000_000 else f"{ns / 1e3:.0f} µs"


def from_pings(clock: str, node_clocks: Sequence[NodeClock]) -> Alignment:
    """A node's wall clock from the pings of one or more snapshots; drift where two of them differ by more than their bounds."""
    ordered = sorted(node_clocks, key=lambda c: c.at_time_s)
    first, last = ordered[0], ordered[-1]
    between = last.at_time_s - first.at_time_s
    if between > 0 and abs(last.ahead_s - first.ahead_s) > first.bound_s + last.bound_s:
        drift, used, bound_s = -round((last.ahead_s - first.ahead_s) / between * 1e9), first, max(first.bound_s, last.bound_s)
    else:
        used = min(ordered, key=lambda c: c.bound_s)
        drift, bound_s = 0, used.bound_s
    return Alignment(clock, -round(used.ahead_s * 1e9), round(bound_s * 1e9), "ping of the node", drift, round((used.at_time_s + used.ahead_s) * 1e9))


def align(
    clocks: Iterable[Clock], pings: Mapping[str, Sequence[NodeClock]], ends: Sequence[SharedEnd], nodes: Iterable[str] = ()
) -> dict[str, Alignment]:
    """The alignment of every clock.

    Args:
        clocks: What the sources know of their clocks.
        pings: By node name.
        ends: Moments shared between clocks.
        nodes: Names of all nodes on the timeline: one node alone needs no alignment.
    """
    known = {wall_clock(n) for n in nodes}
    found: dict[str, Alignment] = {}
    for key in sorted(known | {WALL}):
        node = key.partition(":")[2]
        if pings.get(node):
            found[key] = from_pings(key, pings[node])
        elif len(known) <= 1:
            found[key] = Alignment(key, 0, 0, ONLY_NODE)
        else:
            found[key] = Alignment(key)
    relative = {c.key: c for c in clocks if c.is_relative}
    for clock in relative.values():
        found[clock.key] = _from_limits(clock, found.get(wall_clock(clock.node), found[WALL]))
    return _tie(found, relative, ends)


def _from_limits(clock: Clock, wall: Alignment) -> Alignment:
    """The middle of the span in which the origin lies."""
    low, high = clock.earliest_ns, clock.latest_ns
    if low is not None and high is not None and low <= high:
        middle = (low + high) // 2
        bound = None if wall.bound_ns is None else (high - low + 1) // 2 + wall.bound_ns
        return Alignment(clock.key, wall.to_reference(middle), bound, clock.evidence)
    if high is not None or low is not None:
        limit = high if high is not None else low
        assert limit is not None
        return Alignment(clock.key, wall.to_reference(limit), None, f"{clock.evidence} ({'latest' if high is not None else 'earliest'} possible)")
    return Alignment(clock.key, 0, None, "unaligned")


def _tie(found: dict[str, Alignment], relative: Mapping[str, Clock], ends: Sequence[SharedEnd]) -> dict[str, Alignment]:
    """Clocks that share events become one group; within a group the events decide, the group as a whole keeps its best-known member."""
    by_clock: dict[str, dict[str, int]] = defaultdict(dict)
    for end in ends:
        by_clock[end.clock].setdefault(end.event, end.at_ns)
    result = dict(found)
    waiting = sorted(k for k in by_clock if k in found)
    while waiting:
        group = _group(waiting.pop(0), waiting, by_clock)
        waiting = [k for k in waiting if k not in group]
        if len(group) > 1:
            result.update(_aligned_group(group, by_clock, found, relative))
    return result


def _group(first: str, others: Sequence[str], by_clock: Mapping[str, Mapping[str, int]]) -> list[str]:
    group = [first]
    for key in group:
        group += [k for k in others if k not in group and by_clock[k].keys() & by_clock[key].keys()]
    return group


def _aligned_group(
    group: Sequence[str], by_clock: Mapping[str, Mapping[str, int]], found: Mapping[str, Alignment], relative: Mapping[str, Clock]
) -> dict[str, Alignment]:
    anchor = min(group, key=lambda k: (found[k].bound_ns is None, found[k].bound_ns or 0, k))
    result = {anchor: found[anchor]}
    reached = [anchor]
    for base in reached:
        for key in group:
            common = sorted(by_clock[base].keys() & by_clock[key].keys())
            if key in result or not common:
                continue
            reached.append(key)
            differences = [result[base].to_reference(by_clock[base][e]) - by_clock[key][e] for e in common]
            middle = round(statistics.median(differences))
            spread = max(abs(d - middle) for d in differences) + END_JITTER_NS
            result[key] = _tied(found[key], result[base], middle, spread, len(common), key in relative)
    return result


def _tied(own: Alignment, base: Alignment, offset: int, spread: int, count: int, is_relative: bool) -> Alignment:
    """One clock put where the shared events want it, unless that contradicts what is known without them."""
    where = own.offset_ns if own.bound_ns is not None else None
    if where is not None and own.bound_ns is not None and base.bound_ns is not None and abs(offset - where) > own.bound_ns + base.bound_ns + spread:
        return msgspec.structs.replace(own, method=f"{own.method}; {count} shared events disagree and were not used")
    bound = None if count < MIN_SHARED else spread
    if not is_relative and own.bound_ns is not None and bound is not None and own.bound_ns < bound:
        return own
    plural = "s" if count != 1 else ""
    return Alignment(own.clock, offset, bound, f"{count} shared event{plural} with {base.clock}", own.drift_ppb, own.at_ns)
