"""Flight Recorder dumps of the ranks of one world, compared: who did not join, who differs, which group is the root.

Within a group the ranks vote, because no rank is right by its number. Between groups the trouble is followed to the group whose absent members
wait for nobody. A rank without a dump is unknown, never accused. Dumps of a run that moves are not of one moment: take two and ask `is_moving`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence

import msgspec

from ray_rl_debug.analyze.flight_entries import GroupKey, Ranks, dtypes_of, group_entries, is_finished_together, is_pending, sizes_of, totals_differ
from ray_rl_debug.analyze.flight_p2p import match_p2p
from ray_rl_debug.model.snapshot import CollectiveEntry, FlightRecord


class GroupResult(msgspec.Struct, frozen=True, kw_only=True):
    """What the dumps say of one process group. Ranks are those of the world."""

    name: str
    description: str | None
    members: tuple[int, ...]
    kind: str
    """``missing`` (members did not join), ``type``, ``size``, ``dtype`` (members differ), ``p2p`` (a send or recv has no partner),
    ``device`` (all joined, on some the GPU has not begun), ``network`` (all joined and begun), ``unknown`` (dumps are lacking), ``done``."""
    op: str | None = None
    seq: int | None = None
    culprits: tuple[int, ...] = ()
    """Members to look at; empty where the vote is undecided."""
    waiting: tuple[int, ...] = ()
    """Members whose entry is not finished."""
    unknown: tuple[int, ...] = ()
    """Members without a dump."""
    undecided: bool = False
    """The vote was a tie: `votes` shows the sides."""
    votes: tuple[tuple[str, tuple[int, ...]], ...] = ()
    pairs: tuple[tuple[int, int], ...] = ()
    """Waiter and partner, for sends and receives."""
    elsewhere: tuple[int, ...] = ()
    """Culprits of sends and receives that wait in a collective of the same group instead."""
    since_time_s: float | None = None
    """When the first of the waiting entries was enqueued."""

    @property
    def is_trouble(self) -> bool:
        return self.kind != "done"


class FlightResult(msgspec.Struct, frozen=True, kw_only=True):
    """All groups in trouble, and where the trouble begins."""

    groups: tuple[GroupResult, ...] = ()
    roots: tuple[GroupResult, ...] = ()
    """Groups in trouble whose culprits wait for no other group; all of a ring when groups wait for each other."""
    culprits: tuple[int, ...] = ()
    """Culprits of the roots."""
    cycle: bool = False
    moving: bool | None = None
    """True: the run moved between two dumps or while one set was written, and nobody is accused. None: only one set of dumps."""
    unusable: tuple[str, ...] = ()
    """Sources left out, with the reason."""


def match(records: Sequence[FlightRecord], earlier: Sequence[FlightRecord] | None = None) -> FlightResult:
    """Compare the dumps of one world; ``earlier`` are dumps of the same ranks some seconds before."""
    by_rank, unusable = _by_rank(records)
    moving = None if earlier is None else is_moving(earlier, records)
    if moving:
        return FlightResult(moving=True, unusable=unusable)
    grouped = group_entries(by_rank)
    if any(_is_lopsided(ranks) for ranks in grouped.values()):
        return FlightResult(moving=True, unusable=unusable)
    results: dict[GroupKey, GroupResult] = {}
    for key, ranks in grouped.items():
        result = _match_group(key, ranks)
        if result.is_trouble:
            results[key] = result
    roots, cycle = _roots(results, by_rank)
    return FlightResult(
        groups=tuple(results.values()),
        roots=roots,
        culprits=tuple(sorted({rank for root in roots for rank in root.culprits})),
        cycle=cycle,
        moving=moving,
        unusable=unusable,
    )


def is_moving(first: Sequence[FlightRecord], second: Sequence[FlightRecord]) -> bool:
    """Did any rank enqueue or finish anything between two sets of dumps?"""
    before = {(r.rank, r.pid): _progress(r) for r in first}
    return any(before[key] != _progress(r) for r in second if (key := (r.rank, r.pid)) in before)


def _is_lopsided(ranks: Ranks) -> bool:
    """Has a rank finished with all members what another, by its dump, has not even begun? Then the dumps are not of one moment."""
    finished = max((e.seq for entries in ranks.collectives.values() for e in entries if is_finished_together(e)), default=0)
    return any(last < finished for rank, last in ranks.last.items() if rank not in ranks.overwritten)


def _progress(record: FlightRecord) -> tuple[tuple[str, bool, int, int], ...]:
    """Per group and kind: the highest number, and how many entries are unfinished."""
    highest: dict[tuple[str, bool], int] = {}
    pending: Counter[tuple[str, bool]] = Counter()
    for entry in record.entries:
        key = (entry.group, entry.is_p2p)
        highest[key] = max(highest.get(key, 0), entry.seq)
        pending[key] += is_pending(entry)
    return tuple(sorted((*key, seq, pending[key]) for key, seq in highest.items()))


def _by_rank(records: Sequence[FlightRecord]) -> tuple[dict[int, FlightRecord], tuple[str, ...]]:
    unusable = [f"{r.source}: its rank is not known" for r in records if r.rank is None]
    by_rank: dict[int, FlightRecord] = {}
    twice = Counter(r.rank for r in records)
    for record in records:
        if record.rank is None:
            continue
        if twice[record.rank] > 1:
            unusable.append(f"{record.source}: {twice[record.rank]} dumps claim rank {record.rank}; give the dumps of one world and one moment")
        else:
            by_rank[record.rank] = record
    return by_rank, tuple(unusable)


def _match_group(key: GroupKey, ranks: Ranks) -> GroupResult:
    """The first number at which the members are not at one and somebody still waits."""
    base = GroupResult(name=key.name, description=key.description, members=key.members, kind="done", unknown=ranks.unknown)
    numbered = {rank: {e.seq: e for e in entries} for rank, entries in ranks.collectives.items()}
    found: GroupResult | None = None
    if any(is_pending(e) for entries in numbered.values() for e in entries.values()):
        # Older entries were overwritten on some ranks: before this number they cannot be compared.
        floor = max((min(entries) for rank, entries in numbered.items() if entries and rank not in ranks.whole), default=1)
        for seq in sorted({seq for entries in numbered.values() for seq in entries if seq >= floor}):
            found = _at(base, {rank: entries[seq] for rank, entries in numbered.items() if seq in entries}, numbered, seq, ranks)
            if found is not None:
                break
    p2p = match_p2p(key, ranks)
    if p2p is None or (found is not None and not (found.kind == "missing" and set(found.culprits) <= set(p2p.waiting))):
        return found or base
    since = [e.created_time_s for rank in p2p.waiting for e in ranks.p2p[rank] if is_pending(e) and e.created_time_s]
    return msgspec.structs.replace(
        base,
        kind="p2p",
        op=p2p.op,
        seq=p2p.seq,
        culprits=p2p.culprits,
        waiting=p2p.waiting,
        pairs=p2p.pairs,
        elsewhere=tuple(sorted(set(p2p.culprits) & set(found.waiting))) if found is not None else (),
        since_time_s=min(since, default=None),
    )


def _at(
    base: GroupResult, here: Mapping[int, CollectiveEntry], numbered: Mapping[int, Mapping[int, CollectiveEntry]], seq: int, ranks: Ranks
) -> GroupResult | None:
    waiting = tuple(sorted(rank for rank, e in here.items() if is_pending(e)))
    if not waiting:
        return None
    first = here[waiting[0]]
    since = [e.created_time_s for e in here.values() if is_pending(e) and e.created_time_s]
    base = msgspec.structs.replace(base, op=first.op, seq=seq, waiting=waiting, since_time_s=min(since, default=None))
    for kind, value_of in (("type", _op_of), ("size", sizes_of), ("dtype", dtypes_of)):
        differing = _vote(kind, {rank: value_of(e, len(base.members)) for rank, e in here.items()}, base)
        if differing is not None:
            return differing
    absent = tuple(sorted(r for r, entries in numbered.items() if seq not in entries and ranks.last[r] < seq and r not in ranks.overwritten))
    if absent:
        return msgspec.structs.replace(base, kind="missing", culprits=absent)
    if ranks.unknown or ranks.overwritten:
        return msgspec.structs.replace(base, kind="unknown", unknown=tuple(sorted({*ranks.unknown, *ranks.overwritten})))
    if totals_differ(here.values()):
        return msgspec.structs.replace(base, kind="size", undecided=True)
    states = {rank: e.state for rank, e in here.items() if is_pending(e)}
    late = tuple(sorted(rank for rank, state in states.items() if state == "scheduled"))
    if late and len(late) < len(here) and not first.op.startswith("gloo:"):
        return msgspec.structs.replace(base, kind="device", culprits=late)
    return msgspec.structs.replace(base, kind="network")


def _op_of(entry: CollectiveEntry, size: int) -> Hashable:
    return entry.op


def _vote(kind: str, values: Mapping[int, Hashable | None], base: GroupResult) -> GroupResult | None:
    """The minority, where there is one; None when all are of one mind or nothing can be compared."""
    sides: dict[Hashable, list[int]] = defaultdict(list)
    for rank, value in sorted(values.items()):
        if value is not None:
            sides[value].append(rank)
    if len(sides) < 2:
        return None
    ordered = sorted(sides.items(), key=lambda side: (-len(side[1]), side[1]))
    # Members whose dump is lacking might have been on the smaller side.
    tie = len(ordered[0][1]) <= len(ordered[1][1]) + len(base.unknown)
    return msgspec.structs.replace(
        base,
        kind=kind,
        undecided=tie,
        culprits=() if tie else tuple(sorted(rank for _, side in ordered[1:] for rank in side)),
        votes=tuple((str(value), tuple(side)) for value, side in ordered),
    )


def _roots(results: Mapping[GroupKey, GroupResult], by_rank: Mapping[int, FlightRecord]) -> tuple[tuple[GroupResult, ...], bool]:
    """Follow each group to the groups that its culprits wait in."""
    waits_in: dict[int, GroupKey] = {}
    for rank, record in by_rank.items():
        for entry in record.entries:
            keys = [key for key in results if key.name == entry.group and rank in key.members]
            if is_pending(entry) and keys:
                waits_in[rank] = keys[0]
                break
    leads_to = {key: {waits_in[r] for r in result.culprits if r in waits_in and waits_in[r] != key} for key, result in results.items()}
    ends = [key for key in results if not leads_to[key]]
    if ends:
        return tuple(_without_waiters(results[key], waits_in) for key in ends), False
    return tuple(results.values()), bool(results)


def _without_waiters(result: GroupResult, waits_in: Mapping[int, GroupKey]) -> GroupResult:
    if result.kind != "missing":
        return result
    return msgspec.structs.replace(result, culprits=tuple(rank for rank in result.culprits if rank not in waits_in))
