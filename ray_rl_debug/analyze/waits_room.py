"""Edges of actors that were not started to those who hold what they need, where both are to share one placement group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.nodes import NodeKind, node_of
from ray_rl_debug.analyze.room import fits, holders, need_of
from ray_rl_debug.analyze.view import View
from ray_rl_debug.model.report import Certainty


def room_edges(view: View, known: Sequence[Edge]) -> Iterator[Edge]:
    """`known` are the edges found so far. In a cluster as a whole others may end, or nodes may come: there no holder is blamed."""
    pending = {node_of(NodeKind.ACTOR, key): a for key, a in view.actors.items() if a.state == "PENDING_CREATION" and not a.pid}
    for node in sorted({e.target for e in known if e.target in pending} if pending else ()):
        need = need_of(view, pending[node])
        if need.group is None or not need.amounts or fits(view, need):
            continue
        for holder in holders(view, need):
            held = ", ".join(f"{v:g} {k}" for k, v in sorted(holder.held.items()))
            evidence = f"{holder.one.identity.label} holds {held} of {need.place}, and {holder.one.does()}"
            yield Edge(source=node, target=holder.one.key, why=Why.ROOM, evidence=evidence, certainty=Certainty.LIKELY)
