"""Edges from Flight Recorder dumps: a rank whose collective is unfinished waits for the members that have not enqueued it.

Dumps count what the stacks only show: they tell apart ranks that stand at the same line in different rounds. Where the dumps are of different
moments, or a member's dump is lacking, nobody is accused.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.flight import FlightResult, GroupResult, match
from ray_rl_debug.analyze.flight_entries import is_pending
from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.view import View
from ray_rl_debug.model.report import Certainty
from ray_rl_debug.model.snapshot import FlightRecord, Node

USUAL_FACTOR = 3.0
"""A collective is overdue when it takes this many times the longest pause between two of them so far,"""
OVERDUE_FLOOR_S = 5.0
"""and at least this long;"""
OVERDUE_ALONE_S = 60.0
"""where nothing came before it, this long."""
TWO_MOMENTS_S = 1.0


class FlightWorld(msgspec.Struct, frozen=True, kw_only=True):
    """The dumps of one world, compared."""

    name: str
    members: Mapping[int, str]
    """Rank to process."""
    result: FlightResult
    is_live: bool
    """Read from the running processes, not from files."""
    taken_time_s: float | None
    usual_s: float | None
    """The longest pause between two collectives of one rank."""

    def key(self, rank: int) -> str | None:
        return self.members.get(rank)

    def label(self, rank: int) -> str:
        return f"{self.name}/{rank}"

    def age_s(self, group: GroupResult) -> float | None:
        """How long the ranks have waited, by the clock of the dumps."""
        if self.taken_time_s is None or group.since_time_s is None:
            return None
        return max(0.0, self.taken_time_s - group.since_time_s)

    def certainty(self, group: GroupResult) -> Certainty:
        """Ranks that differ differ for good; that somebody is only late is told by how long the others have waited."""
        if group.undecided:
            return Certainty.POSSIBLE
        if group.kind in ("type", "size", "dtype"):
            return Certainty.LIKELY
        age = self.age_s(group)
        floor = OVERDUE_ALONE_S if self.usual_s is None else max(OVERDUE_FLOOR_S, USUAL_FACTOR * self.usual_s)
        return Certainty.LIKELY if age is not None and age >= floor else Certainty.POSSIBLE


def find_flight(view: View) -> tuple[FlightWorld, ...]:
    """The dumps of a view by world."""
    by_world: dict[str, dict[int, list[tuple[FlightRecord, Seen]]]] = defaultdict(lambda: defaultdict(list))
    for node in view.snapshot.nodes:
        for record in node.flight_records:
            one = _process_of(view, node, record)
            rank = record.rank if record.rank is not None else one.identity.rank if one is not None else None
            if one is not None and rank is not None:
                world = one.identity.world or f"{one.identity.job_id}|{one.identity.class_name}"
                by_world[world][rank].append((record, one))
    return tuple(_world(ranks) for _, ranks in sorted(by_world.items()) if not _is_outdated(ranks.values()) and not _is_partial(view, ranks))


def _is_partial(view: View, ranks: Mapping[int, Sequence[tuple[FlightRecord, Seen]]]) -> bool:
    """gloo does not write who is a member of a group: where dumps of the world are lacking, those that are there would pass for all."""
    held = [pair for some in ranks.values() for pair in some]
    if all(entry.group in record.groups for record, _ in held for entry in record.entries):
        return False
    size = max((one.identity.world_size or 0 for _, one in held), default=0)
    have = {one.key for _, one in held}
    classes = {(one.identity.job_id, one.identity.class_name) for _, one in held if one.identity.class_name}
    kin = [s for s in view if s.key not in have and (s.identity.job_id, s.identity.class_name) in classes and not s.is_idle]
    return len(ranks) < size or bool(kin)


def _is_outdated(ranks: Iterable[Sequence[tuple[FlightRecord, Seen]]]) -> bool:
    """Files on disk may be of an earlier moment: a rank stands in a collective now, and its dump knows of none."""
    for held in ranks:
        record, one = held[-1]
        is_file = "://" not in record.source
        if is_file and one.kind is Kind.COLLECTIVE and record.entries and not any(is_pending(e) for e in record.entries):
            return True
    return False


def _process_of(view: View, node: Node, record: FlightRecord) -> Seen | None:
    if record.pid is not None:
        key = view.by_node_pid.get((node.name, record.pid))
        return view.seen.get(key) if key is not None else None
    here = [s for s in view if s.node.name == node.name]
    if len(here) == 1:
        return here[0]
    for some in (here, list(view)):
        ranked = [s for s in some if s.identity.rank == record.rank and record.rank is not None]
        if len(ranked) == 1:
            return ranked[0]
    return None


def _world(ranks: Mapping[int, Sequence[tuple[FlightRecord, Seen]]]) -> FlightWorld:
    last, first = {}, {}
    for rank, held in ranks.items():
        ordered = sorted((r for r, _ in held), key=lambda r: r.taken_time_s or 0.0)
        last[rank] = msgspec.structs.replace(ordered[-1], rank=rank)
        if (ordered[-1].taken_time_s or 0.0) - (ordered[0].taken_time_s or 0.0) >= TWO_MOMENTS_S:
            first[rank] = msgspec.structs.replace(ordered[0], rank=rank)
    one = next(iter(ranks.values()))[0][1]
    times = [r.taken_time_s for r in last.values() if r.taken_time_s is not None]
    return FlightWorld(
        name=one.identity.label.rsplit("/", 1)[0] if one.identity.rank is not None else one.identity.role or one.identity.class_name or "rank",
        members={rank: held[-1][1].key for rank, held in sorted(ranks.items())},
        result=match(tuple(last.values()), tuple(first.values()) if first else None),
        is_live=all("://" in r.source for r in last.values()),
        taken_time_s=max(times, default=None),
        usual_s=_usual_s(last.values()),
    )


def _usual_s(records: Iterable[FlightRecord]) -> float | None:
    longest: float | None = None
    for record in records:
        times = sorted(e.created_time_s for e in record.entries if e.created_time_s is not None)
        for before, after in itertools.pairwise(times):
            longest = max(longest or 0.0, after - before)
    return longest


def covered(world: FlightWorld, view: View) -> frozenset[str]:
    """Processes whose waits the dumps tell better than their stacks do."""
    if world.result.moving and not (world.is_live or not view.has_stacks):
        return frozenset()  # files of another time say nothing of now
    ranks = {rank for g in world.result.groups if g.kind != "unknown" for rank in (*g.waiting, *g.culprits)}
    if world.result.moving:
        ranks = set(world.members)
    return frozenset(key for rank in ranks if (key := world.key(rank)) is not None)


def flight_edges(view: View, worlds: Sequence[FlightWorld]) -> Iterator[Edge]:
    """Who waits for whom, by the dumps."""
    for world in worlds:
        for group in world.result.groups:
            for waiter, target in _pairs(group):
                source, aim = world.key(waiter), world.key(target)
                if source is None or aim is None or view.seen[source].is_stopped or view.seen[source].motion is Motion.MOVING:
                    continue
                sure = Certainty.POSSIBLE if group.undecided else Certainty.PROVEN
                yield Edge(
                    source=source,
                    target=aim,
                    why=Why.P2P if group.kind == "p2p" else Why.COLLECTIVE,
                    op=bare(group.op),
                    evidence=say(world, group, target),
                    certainty=sure,
                )


def _pairs(group: GroupResult) -> Iterator[tuple[int, int]]:
    if group.kind == "p2p":
        yield from group.pairs
    elif group.undecided and len(group.votes) > 1:
        for i, (_, side) in enumerate(group.votes):
            others = [r for j, (_, other) in enumerate(group.votes) if j != i for r in other]
            yield from ((a, b) for a in side for b in others)
    elif group.kind in ("missing", "type", "size", "dtype", "device"):
        yield from ((a, b) for a in group.waiting if a not in group.culprits for b in group.culprits)


def bare(op: str | None) -> str:
    """``all_reduce`` of ``nccl:all_reduce``; ``recv`` of ``nccl:recv 1<-0``."""
    return (op or "collective").rpartition(":")[2].split(" ", 1)[0]


def name_group(group: GroupResult) -> str:
    """How people know a process group."""
    return f"group {group.name}" + (f" ({group.description})" if group.description and group.description != group.name else "")


def say(world: FlightWorld, group: GroupResult, rank: int) -> str:
    """What the dumps say of one culprit, in a few words."""
    at = f"{bare(group.op)} number {group.seq} of {name_group(group)}"
    if group.kind == "missing":
        return f"{world.label(rank)} has not enqueued {at}"
    if group.kind == "p2p":
        return f"{world.label(rank)} has no partner for {group.op}"
    if group.kind == "device":
        return f"{world.label(rank)}: its GPU has not begun {at}"
    mine = next((what for what, side in group.votes if rank in side), None)
    return f"{world.label(rank)} has {mine} where others have {at}" if mine else f"the ranks differ at {at}"
