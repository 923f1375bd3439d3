"""Entries of the Flight Recorder by group: who is a member, what is unfinished, which sizes must agree."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Hashable, Mapping

import msgspec

from ray_rl_debug.model.snapshot import CollectiveEntry, FlightRecord

_SAME_OUTPUT = ("reduce_scatter", "scatter")
_SAME_INPUT = ("all_gather", "allgather", "gather", "all_reduce", "allreduce", "reduce", "broadcast")
_TOTALS = ("all_to_all", "alltoall")
_TOGETHER = ("all_reduce", "allreduce", "all_gather", "allgather", "barrier", *_TOTALS)


class GroupKey(msgspec.Struct, frozen=True, kw_only=True):
    """A process group: names alone are not unique, because ranks that are not members do not count a group."""

    name: str
    members: tuple[int, ...]
    """In the order of the group's own ranks."""
    description: str | None = None
    is_certain: bool = True
    """False: the members are those that recorded something, because torch did not write them (gloo)."""


class Ranks(msgspec.Struct, frozen=True, kw_only=True):
    """The entries of one group by rank of the world."""

    collectives: dict[int, tuple[CollectiveEntry, ...]]
    p2p: dict[int, tuple[CollectiveEntry, ...]]
    unknown: tuple[int, ...]
    """Members without a dump."""
    whole: frozenset[int]
    """Ranks whose dump reaches back to their first entry."""
    overwritten: frozenset[int]
    """Ranks without any entry of this group whose older entries are lost."""
    last: dict[int, int]
    """The highest number each rank has enqueued, as far as it is known; 0 for none."""


def is_pending(entry: CollectiveEntry) -> bool:
    """Not finished. gloo leaves every state at ``scheduled``: only `retired` tells."""
    return entry.state != "completed" and entry.retired is not True


def group_entries(by_rank: Mapping[int, FlightRecord]) -> dict[GroupKey, Ranks]:
    """All groups that any dump names."""
    members: dict[tuple[str, tuple[int, ...] | str], set[int]] = defaultdict(set)
    described: dict[tuple[str, tuple[int, ...] | str], str] = {}
    for rank, record in sorted(by_rank.items()):
        for name in dict.fromkeys((*record.groups, *(e.group for e in record.entries))):
            description = record.group_descriptions.get(name, "")
            identity: tuple[str, tuple[int, ...] | str] = (name, record.groups.get(name) or description)
            members[identity].add(rank)
            described.setdefault(identity, description)
    found: dict[GroupKey, Ranks] = {}
    for identity, seen in members.items():
        name, known = identity
        if isinstance(known, tuple):
            key = GroupKey(name=name, members=known, description=described[identity] or None)
        else:
            everybody = known == "default_pg" or name == "0"
            key = GroupKey(name=name, members=tuple(sorted(by_rank if everybody else seen)), description=known or None, is_certain=False)
        found[key] = _ranks(key, by_rank)
    return found


def _ranks(key: GroupKey, by_rank: Mapping[int, FlightRecord]) -> Ranks:
    present = {rank: by_rank[rank] for rank in key.members if rank in by_rank}
    own = {rank: tuple(e for e in record.entries if e.group == key.name) for rank, record in present.items()}
    whole = frozenset(rank for rank, record in present.items() if _is_whole(record))
    collectives = {rank: tuple(e for e in entries if not e.is_p2p) for rank, entries in own.items()}
    last = {rank: max([e.seq for e in entries] + [present[rank].enqueued.get(key.name, 0)]) for rank, entries in collectives.items()}
    return Ranks(
        collectives=collectives,
        p2p={rank: tuple(e for e in entries if e.is_p2p) for rank, entries in own.items()},
        unknown=tuple(sorted(set(key.members) - present.keys())),
        whole=whole,
        overwritten=frozenset(rank for rank, entries in own.items() if not entries and rank not in whole and not last[rank]),
        last=last,
    )


def _is_whole(record: FlightRecord) -> bool:
    if not record.entries:
        return not record.enqueued
    return record.first_record == 0 if record.first_record is not None else any(e.seq <= 1 for e in record.entries)


def is_finished_together(entry: CollectiveEntry) -> bool:
    """Finished, and of a kind that no member finishes before all have joined."""
    op = entry.op.rpartition(":")[2].lstrip("_").lower()
    return not is_pending(entry) and op.startswith(_TOGETHER)


def sizes_of(entry: CollectiveEntry, size: int) -> Hashable | None:
    """The number of elements that must be the same on all ranks; None where sizes may differ."""
    op = entry.op.rpartition(":")[2].lstrip("_").lower()
    if op.startswith(_TOTALS) or "coalesced" in op or not op.startswith((*_SAME_OUTPUT, *_SAME_INPUT)):
        return None
    chosen = entry.output_sizes if op.startswith(_SAME_OUTPUT) else entry.input_sizes or entry.output_sizes
    return _elements(chosen) if chosen else None


def dtypes_of(entry: CollectiveEntry, size: int) -> Hashable | None:
    return entry.input_dtypes or entry.output_dtypes or None


def totals_differ(entries: Collection[CollectiveEntry]) -> bool:
    """all_to_all: what all ranks send is not what all ranks expect. Nobody can be named from that."""
    if not all(e.op.rpartition(":")[2].startswith(_TOTALS) for e in entries):
        return False
    return sum(_elements(e.input_sizes) for e in entries) != sum(_elements(e.output_sizes) for e in entries)


def _elements(sizes: tuple[tuple[int, ...], ...]) -> int:
    return sum(math.prod(shape) for shape in sizes)
