"""Ranks that meet others in more than one thread: the training in one, what is written or sent behind it in another.

A rank is seen by one thread, and may have joined a collective with another one. Whose counterpart of that thread stands elsewhere has not
joined, but what keeps it is that thread, whose own waits are not followed: such an edge is *possible*.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.groups import group_of
from ray_rl_debug.analyze.kinds_of_places import THREAD_WAITS, WAITS_FOR_RANKS, Kind
from ray_rl_debug.analyze.main_activity import SeenThread
from ray_rl_debug.analyze.nodes import node_of_rank
from ray_rl_debug.analyze.places import Place
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.view import View
from ray_rl_debug.analyze.waits_children import to_unseen
from ray_rl_debug.analyze.worlds import World
from ray_rl_debug.model.report import Certainty

_MOST_MISSING = 8
"""Ranks that were not seen: one of them is enough to leave a wait open."""

Site = tuple[str, tuple[tuple[str, str, int | None], ...]]
"""A collective and the own path that leads to it: ranks at equal sites are in the same call."""


class Beside:
    """What the threads of some ranks are in, beside the thread by which each of them is seen."""

    def __init__(self, members: Sequence[Seen]) -> None:
        self._inside: dict[Site, set[str]] = defaultdict(set)
        for one in members:
            for thread in others(one) if len(one.threads) > 1 else ():
                if thread.place.kind in WAITS_FOR_RANKS:
                    self._inside[(thread.place.op, thread.place.path)].add(one.key)
        self._kept_by_another: dict[tuple[int, str], bool] = {}

    def has_joined(self, other: Seen, site: Site) -> bool:
        """Is a thread of it in this call, although it is seen elsewhere?"""
        return bool(self._inside) and other.key in self._inside.get(site, ())

    def certainty(self, one: Seen, other: Seen, sure: Certainty) -> Certainty:
        """Of an edge between two ranks: how sure it is that what `other` is seen in keeps it from where `one` is."""
        ends = (id(one.place), other.key)  # ranks that stand in the same way share one place
        if ends not in self._kept_by_another:
            counterpart = _counterpart(one, other)
            self._kept_by_another[ends] = counterpart is not None and counterpart is not other.followed
        return Certainty.POSSIBLE if self._kept_by_another[ends] else sure


def _receivers(one: Seen) -> list[SeenThread]:
    """The threads of a process that wait for messages of other ranks, where nothing else can end the wait of the thread by which it is seen.

    At least two; of one alone the process is seen by it.
    """
    waits = one.place is not None and one.place.kind in THREAD_WAITS and not one.is_stopped
    found = others(one) if waits and len(one.threads) > 2 else []
    return found if len(found) > 1 and all(t.place.kind is Kind.P2P for t in found) else []


def receiver_edges(world: World) -> Iterator[Edge]:
    """Of ranks whose main thread waits for what threads of theirs receive, each from a rank that it names."""
    by_rank = {world.ranks[m.key]: m for m in world.members if m.key in world.ranks}
    for one in world.members:
        for thread in _receivers(one) if one.motion is not Motion.MOVING else ():
            peer = by_rank.get(thread.place.peer) if thread.place.peer is not None else None
            said = f"its thread {thread.called} waits in {thread.place.op}"
            wanted = world.missing[:_MOST_MISSING] if thread.place.peer is None else tuple(r for r in world.missing if r == thread.place.peer)
            for rank in wanted:
                target, evidence = node_of_rank(world.key, rank), f"{said}, and rank {rank} was not seen"
                yield Edge(source=one.key, target=target, why=Why.RECEIVERS, op=thread.place.op, evidence=evidence, certainty=Certainty.POSSIBLE)
            if thread.place.peer in world.missing:
                continue
            said += f", which names rank {thread.place.peer}" if peer is not None else ", whose peer is not known"
            for other in world.members if peer is None else (peer,):
                sure = Certainty.LIKELY if peer is not None else Certainty.POSSIBLE
                if other is not one:
                    evidence = f"{said}: {other.at()}"
                    yield Edge(source=one.key, target=other.key, why=Why.RECEIVERS, op=thread.place.op, evidence=evidence, certainty=sure)


def stray_edges(view: View, worlds: Sequence[World]) -> Iterator[Edge]:
    """Of processes whose threads wait for messages of ranks, and whose own rank was not read: who sends them was not seen."""
    members = {m.key for world in worlds for m in world.members}
    for one in (s for kind in sorted(THREAD_WAITS) for s in view.at(kind)):
        if one.key not in members and one.motion is not Motion.MOVING and _receivers(one):
            yield to_unseen(one, "what its threads receive", Why.RECEIVERS)


def any_peer_edges(world: World, one: Seen, op: str) -> Iterator[Edge]:
    """Of a rank in a send or recv that does not tell its peer: any other rank may be it."""
    for other in world.members:
        if other is not one:
            evidence = f"its peer is not known, and all other ranks wait elsewhere; {other.identity.label} {other.at()}"
            yield Edge(source=one.key, target=other.key, why=Why.RECEIVERS, op=op, evidence=evidence, certainty=Certainty.LIKELY)


def others(one: Seen) -> list[SeenThread]:
    """The threads of a process that do something of their own, without the one by which it is seen."""
    return [t for t in one.threads if t is not one.telling and t.score > 0 and t.place.path]


def may_cross(one: Seen) -> bool:
    """Does a rank stand in two collectives that may be of one group? Which call of another rank each of them meets is told by their order alone."""
    beside = [t for t in others(one) if t.place.kind is Kind.COLLECTIVE] if len(one.threads) > 1 else []
    return any(one.group is None or group_of(one.process, t.place, t.sample) in (None, one.group) for t in beside)


def _counterpart(one: Seen, other: Seen) -> SeenThread | None:
    """The thread of `other` that runs the same function as the one by which `one` is seen, where `other` is seen by another one."""
    if one.place is None or not one.place.path or (other.place is not None and _begin(other.place) == _begin(one.place)):
        return None
    return next((t for t in others(other) if _begin(t.place) == _begin(one.place)), None)


def _begin(place: Place) -> tuple[str, str] | None:
    return place.path[-1][:2] if place.path else None
