"""Edges of what was not started to those who hold what it needs: running tasks, actors in one placement group, or who reserved another one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.known_edges import all_waiters
from ray_rl_debug.analyze.nodes import NodeKind, node_of
from ray_rl_debug.analyze.room import fits, holders, may_fit, need_of, total, unplaceable
from ray_rl_debug.analyze.view import View
from ray_rl_debug.model.report import Certainty
from ray_rl_debug.model.snapshot import RayActor, RayPlacementGroup, RayTask

_PENDING = ("PENDING", "RESCHEDULING")
"""States of a placement group that has no room."""


def reserved_edges(view: View, known: Sequence[Edge]) -> Iterator[Edge]:
    """From placement groups that are pending to actors that reserved others, and may give them back: not to those who wait for the pending one."""
    groups = list(view.placement_groups.values())
    awaited = {e.target for e in known}
    for asked in groups:
        node = node_of(NodeKind.PLACEMENT_GROUP, asked.placement_group_id)
        if asked.state not in _PENDING or node not in awaited:
            continue
        need, behind = need_of(view, asked), all_waiters(node, known)
        for other in groups:
            same_job = other.job_id == asked.job_id or None in (other.job_id, asked.job_id)
            creator = other.creator_actor_id if other.state == "CREATED" and same_job else None
            shared = sorted(set(total(other.bundles)) & set(need.amounts))
            if creator is None or not shared:
                continue
            one = view.actor_process(creator)
            actor = view.actors.get(creator)
            if one is None and (actor is None or actor.state != "DEAD"):
                evidence = f"an actor that was not seen has reserved {', '.join(shared)} with another placement group"
                yield Edge(source=node, target=node_of(NodeKind.ACTOR, creator), why=Why.ROOM, evidence=evidence, certainty=Certainty.LIKELY)
            elif one is not None and one.key not in behind and (one.is_at_work or not one.is_idle):
                evidence = f"{one.identity.label} has reserved {', '.join(shared)} with another placement group, and {one.does()}"
                yield Edge(source=node, target=one.key, why=Why.ROOM, evidence=evidence, certainty=Certainty.LIKELY)


def queue_edges(view: View, known: Sequence[Edge]) -> Iterator[Edge]:
    """From what no node has room for to tasks that hold what it needs, and give it back at their end: not to those who wait for it."""
    nodes = _without_room(view)
    awaited = sorted({e.target for e in known if e.target in nodes} if nodes else ())
    for node in awaited:
        need = need_of(view, nodes[node])
        if need.group is not None or not need.amounts or unplaceable(view, need) is not None:
            continue
        behind = all_waiters(node, known)
        ending = [h for h in holders(view, need) if h.one.actor is None and h.one.key not in behind]
        if not may_fit(view, need, ending):
            continue
        for holder in ending:
            held = ", ".join(f"{v:g} {k}" for k, v in sorted(holder.held.items()))
            evidence = f"{holder.one.identity.label} holds {held} until it ends, and {holder.one.does()}"
            yield Edge(source=node, target=holder.one.key, why=Why.ROOM, evidence=evidence, certainty=Certainty.LIKELY)


def _without_room(view: View) -> dict[str, RayActor | RayTask | RayPlacementGroup]:
    """Tasks, actors and placement groups that Ray has not placed, by their nodes."""
    found: dict[str, RayActor | RayTask | RayPlacementGroup] = {}
    found |= {node_of(NodeKind.TASK, key): t for key, t in view.tasks.items() if t.state == "PENDING_NODE_ASSIGNMENT"}
    found |= {node_of(NodeKind.ACTOR, key): a for key, a in view.actors.items() if a.state == "PENDING_CREATION" and not a.pid}
    found |= {node_of(NodeKind.PLACEMENT_GROUP, key): g for key, g in view.placement_groups.items() if g.state in _PENDING}
    return found


def room_edges(view: View, known: Sequence[Edge]) -> Iterator[Edge]:
    """`known` are the edges found so far. In a cluster as a whole others may end, or nodes may come: there no actor is blamed that holds its room."""
    yield from queue_edges(view, known)
    yield from reserved_edges(view, known)
    pending = {node_of(NodeKind.ACTOR, key): a for key, a in view.actors.items() if a.state == "PENDING_CREATION" and not a.pid}
    for node in sorted({e.target for e in known if e.target in pending} if pending else ()):
        need = need_of(view, pending[node])
        if need.group is None or not need.amounts or fits(view, need):
            continue
        for holder in holders(view, need):
            held = ", ".join(f"{v:g} {k}" for k, v in sorted(holder.held.items()))
            evidence = f"{holder.one.identity.label} holds {held} of {need.place}, and {holder.one.does()}"
            yield Edge(source=node, target=holder.one.key, why=Why.ROOM, evidence=evidence, certainty=Certainty.LIKELY)
