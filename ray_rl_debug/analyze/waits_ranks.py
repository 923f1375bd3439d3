"""Edges between ranks: who in a collective, rendezvous or recv waits for which rank.

First look for a rank in no collective: while there is one, different collectives do not mean a mismatch (gloo's broadcast returns early at
its source; peers of one stuck rank wait in broadcast, recv and all_reduce). Only when everybody waits do the places themselves disagree.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence

import msgspec

from ray_rl_debug.analyze.deaths import how_dead
from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.gpu_waits import GPU_COLLECTIVE
from ray_rl_debug.analyze.groups import GroupId
from ray_rl_debug.analyze.kinds_of_places import WAITS_FOR_RANKS, Kind
from ray_rl_debug.analyze.nodes import NodeKind, node_of, node_of_rank
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.rank_threads import Beside, Site, any_peer_edges, receiver_edges, stray_edges
from ray_rl_debug.analyze.seen import Seen, as_verb
from ray_rl_debug.analyze.torch_calls import MEETS_ALL, ROOTED
from ray_rl_debug.analyze.view import View
from ray_rl_debug.analyze.worlds import World
from ray_rl_debug.model import gaps
from ray_rl_debug.model.report import Certainty

_FEW = 64
"""Ranks up to which every pair of a mismatch gets its edge; their number grows with the square."""


_MOST_EDGES = 1 << 18
"""Between those that wait and those that have not come; each waiter keeps at least one."""
_LARGE = 512
"""Ranks above which one of several machines that did not answer stands for all."""
_MOST_NAMED = 8
"""Machines that did not answer: of more, nothing tells which of them it is."""


def rank_edges(view: View, worlds: Sequence[World]) -> Iterator[Edge]:
    """Edges inside every world, and of ranks in none."""
    yield from stray_edges(view, worlds)
    for world in worlds:
        told = list(_told_edges(world))
        named = {e.target for e in told}
        rest = tuple(r for r in world.missing if node_of_rank(world.key, r) not in named) if told else world.missing
        world = world if rest == world.missing else msgspec.structs.replace(world, missing=rest)
        found = [*told, *receiver_edges(world), *_world_edges(view, world)]
        if told:
            # who is said not to have come is the peer of those who do not name theirs
            sources = {e.source for e in told}
            found = [e for e in found if e.why is not Why.P2P or e.certainty is Certainty.PROVEN or e.source not in sources]
        yield from found
        if world.is_assumed:
            yield from _absent_edges(world, {e.source for e in found})


_MEETINGS = frozenset({Kind.RENDEZVOUS, Kind.NEW_GROUP, Kind.P2P})
"""Waits that somebody else has to enter: where all who were seen are in one, the others are somewhere else."""


def _absent_edges(world: World, sources: Collection[str]) -> Iterator[Edge]:
    """Of a world of which only some may have been dumped: who meets nobody there waits for those who were not."""
    meeting = [m for m in world.members if is_waiting(m) and m.kind in _MEETINGS and m.key not in sources]
    if sources or len(meeting) < len(world.members):
        return
    for one in meeting:
        op = one.place.op if one.place else "init_process_group"
        why = Why.P2P if one.kind is Kind.P2P else Why.COLLECTIVE
        evidence = f"all {len(world.members)} that were dumped are in it" if len(world.members) > 1 else "no other rank was dumped"
        target = node_of(NodeKind.ABSENT, world.key)
        yield Edge(source=one.key, target=target, why=why, op=op, evidence=evidence, certainty=Certainty.POSSIBLE)


def _told_edges(world: World) -> Iterator[Edge]:
    """To ranks of which a file says that they are elsewhere, or have not come, without showing their stacks."""
    shown = set(world.ranks.values())
    nobody_waits = not any(map(is_waiting, world.members))
    for one in world.members:
        # where no stack shows the call, the words that name who is missing in it say that the others are
        if not one.process.remarks or not (is_waiting(one) or (nobody_waits and bool(one.threads) and not (one.is_idle or one.is_stopped))):
            continue
        for remark in one.process.remarks:
            if remark.kind not in ("except", "missing") or (nobody_waits and remark.kind == "except"):
                continue
            op = one.place.op if one.place else "collective"
            absent = [node_of_rank(world.key, rank) for rank in remark.ranks[:_FEW] if rank not in shown]
            # a thread is nobody's rank: what its own process waits for is told elsewhere
            absent += [node_of(NodeKind.NAMED, remark.name)] if remark.name is not None and not remark.name.endswith("hread") else []
            for target in absent:
                evidence = f"{remark.file}:{remark.line} says: {remark.text[:120]}"
                yield Edge(source=one.key, target=target, why=Why.TOLD, op=op, evidence=evidence, certainty=Certainty.POSSIBLE)


def is_waiting(one: Seen) -> bool:
    """Does a rank wait for other ranks? A stopped process waits for nobody, whatever its stack says."""
    return one.kind in WAITS_FOR_RANKS and not one.is_stopped


def site_of(one: Seen) -> Site:
    """Where a waiting rank stands; only meaningful when it waits."""
    place = one.place
    if place is None:
        return ("", ())
    return (place.op, () if place.op == GPU_COLLECTIVE else place.path)


def split_by_site(members: Sequence[Seen]) -> dict[Site, list[Seen]]:
    """Waiting ranks by the call they are in."""
    sites: dict[Site, list[Seen]] = defaultdict(list)
    at: dict[int, list[Seen]] = {}
    for one in members:
        place = id(one.place)  # one for all that stand there
        if place not in at:
            at[place] = sites[site_of(one)]
        at[place].append(one)
    return dict(sites)


def absent_members(view: View, world: World, waiters: Sequence[Seen]) -> list[Seen]:
    """Members that have not joined what `waiters` wait in, narrowed to those the waiters can mean.

    Ranks that run the waiters' own method come first; ranks of the same class whose rank is not known yet count where ranks are missing.
    """
    absent = [m for m in world.members if not is_waiting(m)]
    if world.missing:
        first = world.members[0].identity
        kin = (first.job_id, first.class_name)
        unranked = view.like(lambda shape: shape.process == "ray-worker" and not shape.is_ranked)
        absent += [s for s in unranked if (s.identity.job_id, s.identity.class_name) == kin]
    stopped = [m for m in absent if m.is_stopped]
    if stopped:
        return stopped
    methods = {w.identity.method for w in waiters if w.identity.method}
    same = [m for m in absent if m.identity.method in methods] if methods else []
    return same or [m for m in absent if not m.is_idle] or absent


def _world_edges(view: View, world: World) -> Iterator[Edge]:
    waiters = [m for m in world.members if is_waiting(m) and m.motion is not Motion.MOVING]
    if not waiters:
        return
    sure = Certainty.LIKELY
    absent = absent_members(view, world, waiters)
    at_wait = {w.key for w in waiters}
    absent = [a for a in absent if a.key not in at_wait]
    in_p2p = [w for w in waiters if w.kind is Kind.P2P]
    others = [w for w in waiters if w.kind is not Kind.P2P]
    # a rank whose group was not read may well be in the default one: then lines are compared, as if no group were known
    unread = any(w.group is None for w in others)
    exact = [w for w in others if w.group is not None and w.identity.rank is not None and not (unread and w.group.is_default)]
    known = {w.key for w in exact}
    together = [w for w in others if w.key not in known]
    beside = Beside(world.members)
    yield from _p2p_edges(view, world, in_p2p, absent or [*exact, *together])
    yield from _group_edges(view, world, exact, beside)
    said = [(a, f"{a.identity.label} has not joined: {'is stopped' if a.is_stopped else a.at()}") for a in _some(absent, together)]
    said += [(p, f"{p.identity.label} {as_verb(view.says(p))} instead") for p in _some(in_p2p if together else (), together)]
    elsewhere = _some([e for e in exact if all(site_of(e) != site_of(one) for one in together)], together)
    said += [(e, f"{e.identity.label} {as_verb(_elsewhere(e))} instead") for e in elsewhere if not absent]
    missing = _missing(view, world, bool(absent))
    for one in together:
        site = site_of(one)
        op = site[0] or "collective"
        for target, evidence in said:
            if not beside.has_joined(target, site):
                untold = _may_be_through(op, target, len(said) + len(world.missing)) or _is_untold_in_c(one, target)
                its = Certainty.POSSIBLE if untold else beside.certainty(one, target, sure)
                yield Edge(source=one.key, target=target.key, why=Why.COLLECTIVE, op=op, evidence=evidence, certainty=its)
        yield from _missing_edges(one, op, missing)
    if absent or in_p2p:
        return
    sites = split_by_site(together)
    if len(sites) < 2 or (world.missing and not _meet_all(sites)):
        return
    if world.missing:  # of several groups one may have met, and another may wait for a rank that was not seen
        sure = Certainty.POSSIBLE
    at = {m.key: f"{m.identity.label} {m.at()} instead" for m in together}
    for one, other in _across(list(sites.values())):
        if not beside.has_joined(other, site_of(one)):
            its = beside.certainty(one, other, sure)
            yield Edge(source=one.key, target=other.key, why=Why.COLLECTIVE, op=site_of(one)[0], evidence=at[other.key], certainty=its)


def _group_edges(view: View, world: World, exact: Sequence[Seen], beside: Beside) -> Iterator[Edge]:
    """Of ranks whose group is known: each waits for the members that have not joined the same call of the same group."""
    by_rank = {m.identity.rank: m for m in world.members if m.identity.rank is not None}
    joined: dict[GroupId, list[Seen]] = defaultdict(list)
    for one in exact:
        if one.group is not None:
            joined[one.group].append(one)
    for group, ranks in joined.items():
        here = {one.key for one in ranks}
        absent = [m for r in group.members if (m := by_rank.get(r)) is not None and m.key not in here]
        told = _some(absent, ranks)
        unseen = sum(r not in by_rank for r in group.members)
        missing = _missing(view, world, bool(absent))
        for one in ranks:
            op = one.place.op if one.place else "collective"
            for other in told:
                if beside.has_joined(other, site_of(one)):
                    continue
                doing = "is stopped" if other.is_stopped else _elsewhere(other)
                evidence = f"{other.identity.label} has not joined {op} of {group.words}: {doing}"
                sure = Certainty.POSSIBLE if _may_be_through(op, other, len(told) + unseen) else beside.certainty(one, other, Certainty.LIKELY)
                yield Edge(source=one.key, target=other.key, why=Why.COLLECTIVE, op=op, evidence=evidence, certainty=sure)
            yield from _missing_edges(one, op, missing)
        sites = split_by_site(ranks)
        is_whole = all(r in by_rank for r in group.members)
        if not absent and len(sites) > 1 and (is_whole or _meet_all(sites)):
            for one, other in _across(list(sites.values())):
                evidence = f"{other.identity.label} {other.at()} of {group.words} instead"
                yield Edge(source=one.key, target=other.key, why=Why.COLLECTIVE, op=site_of(one)[0], evidence=evidence, certainty=Certainty.LIKELY)


def _may_be_through(op: str, other: Seen, absent: int) -> bool:
    """Is it one of several idle ranks, in a call that whoever has taken its part leaves before the others come? Who was not seen may be idle too."""
    return op in ROOTED and absent > 1 and other.is_idle and not other.is_stopped


def _is_untold_in_c(one: Seen, other: Seen) -> bool:
    """Does `one` wait in C, as was read there, and was not read what `other` does in C? It stands at a line that may wait for the same."""
    return bool(one.process.in_c) and not other.process.in_c and other.kind is Kind.CODE and not other.is_stopped


def _meet_all(sites: Iterable[Site]) -> bool:
    """Does nobody leave any of these calls before all have come? Then ranks in two of them never meet, whoever was not seen."""
    return all(op in MEETS_ALL for op, _ in sites)


def _elsewhere(one: Seen) -> str:
    return f"{one.at()} of {one.group.words}" if one.group is not None else one.at()


def _across(sites: Sequence[Sequence[Seen]]) -> Iterator[tuple[Seen, Seen]]:
    """Who waits for whom between the sites: everybody for everybody else; in large worlds a cycle through all of them says the same."""
    if sum(map(len, sites)) <= _FEW:
        yield from ((a, b) for here in sites for there in sites if there is not here for a in here for b in there)
        return
    for here, there in zip(sites, [*sites[1:], sites[0]], strict=True):
        yield from ((a, there[0]) for a in here)
        yield from ((here[0], b) for b in there[1:])


def _some(targets: Sequence[Seen], waiters: Sequence[Seen]) -> Sequence[Seen]:
    """Those of `targets` that get an edge from each waiter: all, but where that would be too many edges some of each place."""
    most = max(1, _MOST_EDGES // max(1, len(waiters)))
    if len(targets) <= most:
        return targets
    number: dict[str, int] = defaultdict(int)
    turns = []
    for order, one in enumerate(targets):
        number[one.at()] += 1
        turns.append((number[one.at()], order))
    return [targets[order] for _, order in sorted(turns)[:most]]


def _p2p_edges(view: View, world: World, in_p2p: Sequence[Seen], absent: Sequence[Seen]) -> Iterator[Edge]:
    """Of ranks in a send or recv; `absent` may be the peers of those whose peer is not known."""
    if not in_p2p:
        return
    by_rank: dict[int, Seen] = {}
    for member in world.members:
        if member.key in world.ranks:
            by_rank.setdefault(world.ranks[member.key], member)
    candidates = [(c, view.says(c)) for c in _some(absent or in_p2p, in_p2p)]
    missing = frozenset(world.missing)
    # where some name their peers, the others may wait for any one of several: which of them is in a ring is not known
    is_ring = len(in_p2p) == len(world.members) and all(one.place is None or one.place.peer is None for one in in_p2p)
    for one in in_p2p:
        peer = by_rank.get(one.place.peer) if one.place is not None and one.place.peer is not None else None
        if peer is not None:
            yield _peer_edge(one, peer, view.says(peer))
        else:
            yield from _edges_to_any(world, one, [(c, at) for c, at in candidates if c is not one], is_ring, missing)


def _peer_edge(one: Seen, peer: Seen, at: str) -> Edge:
    """To the rank that the place of `one` names, which stands `at`."""
    op, named = (one.place.op, one.place.peer) if one.place is not None else ("recv", None)
    sure = Certainty.PROVEN if peer.identity.rank is not None else Certainty.LIKELY
    return Edge(source=one.key, target=peer.key, why=Why.P2P, op=op, evidence=f"{op} names rank {named}: {at}", certainty=sure)


def _edges_to_any(world: World, one: Seen, candidates: Sequence[tuple[Seen, str]], is_ring: bool, missing: frozenset[int]) -> Iterator[Edge]:
    """Where the peer is not known: to each of the candidates, with where it stands."""
    op, named = (one.place.op, one.place.peer) if one.place is not None else ("recv", None)
    if named in missing:
        return
    if named is None and _all_wait(world):
        yield from any_peer_edges(world, one, op)
        return
    said = f"it names rank {named}, and no process is known to have that rank" if named is not None else "its peer is not known"
    # one that has returned may have done its part: whose message is missing, nobody can tell
    only = len(candidates) == 1 and not candidates[0][0].is_idle
    is_whole = world.size == len(world.members) or (world.size is None and named is None)
    sure = Certainty.LIKELY if is_whole and (only or is_ring) else Certainty.POSSIBLE
    for other, at in candidates:
        yield Edge(source=one.key, target=other.key, why=Why.P2P, op=op, evidence=f"{said}; {at}", certainty=sure)


def _all_wait(world: World) -> bool:
    """Were all ranks seen, and does each of them wait for others, some of them in collectives? Then the peer is one of those, whichever it is."""
    whole = world.size == len(world.members) and not world.missing and not world.is_assumed
    stand = all(is_waiting(m) and m.motion is not Motion.MOVING for m in world.members)
    return whole and stand and any(m.kind is not Kind.P2P for m in world.members)


def _missing(view: View, world: World, has_absent: bool) -> list[tuple[str, str]]:
    """Those that were not seen of a world that may lack some, as nodes, each with the evidence: for all who wait the same."""
    if not world.may_lack_ranks:
        return []
    if world.dead:
        dead = world.dead[: max(1, len(world.missing))] if world.missing or not has_absent else ()
        said = (f"{a.class_name} is {a.state}" + (f": {how_dead(a)}" if a.death else "") for a in dead)
        return [(node_of(NodeKind.ACTOR, actor.actor_id), evidence) for actor, evidence in zip(dead, said, strict=True)]
    if not world.missing or has_absent:
        return []
    silent = [g.where for g in view.snapshot.gaps if g.id == gaps.NODE_SILENT]
    if silent:
        ranks = ", ".join(map(str, world.missing[:8]))
        named = silent[: _MOST_NAMED if len(world.members) <= _LARGE else 1]
        more = f", nor did {len(silent) - len(named)} more" if len(named) < len(silent) else ""
        return [(node_of(NodeKind.MACHINE, n), f"rank {ranks} of {world.name} was not seen; {n} did not answer{more}") for n in named]
    absent = world.missing[: max(_MOST_NAMED, _MOST_EDGES // len(world.members))]
    return [(node_of_rank(world.key, rank), f"{world.name}/{rank} was not seen on any node") for rank in absent]


def _missing_edges(one: Seen, op: str, missing: Sequence[tuple[str, str]]) -> Iterator[Edge]:
    for target, evidence in missing:
        yield Edge(source=one.key, target=target, why=Why.COLLECTIVE, op=op, evidence=evidence, certainty=Certainty.LIKELY)
