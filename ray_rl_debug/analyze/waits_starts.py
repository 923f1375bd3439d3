"""Workers of Ray that are being started: an actor with room for it is made as soon as one of them is there.

A worker may be started through a program of the job's, as `uv run` or a container. Until a worker has told Ray of itself, no table of Ray knows it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.nodes import NodeKind, node_of
from ray_rl_debug.analyze.room import fits, need_of, unplaceable
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.view import View
from ray_rl_debug.model.report import Certainty


def start_edges(view: View, known: Sequence[Edge]) -> Iterator[Edge]:
    """From actors that have room and no process, and for which somebody waits, to the workers that start: any of them may be theirs."""
    pending = {node_of(NodeKind.ACTOR, key): a for key, a in view.actors.items() if a.state == "PENDING_CREATION" and not a.pid}
    awaited = sorted({e.target for e in known if e.target in pending}) if pending else []
    starting = [one for one in view if _starts(view, one)] if awaited else []
    for node in awaited:
        need = need_of(view, pending[node])
        if need.amounts and (not fits(view, need) or unplaceable(view, need) is not None):
            continue
        for one in starting:
            evidence = f"pid {one.process.pid} was started for a worker of Ray that has not told of itself yet: {one.process.title[:60]}"
            yield Edge(source=node, target=one.key, why=Why.STARTS, evidence=evidence, certainty=Certainty.LIKELY)


def _starts(view: View, one: Seen) -> bool:
    """Was it started by a raylet, and has neither it nor what it has started told Ray of itself?"""
    if one.process.kind != "ray-worker" or one.has_ended or _has_told(one):
        return False
    return not any(_has_told(child) for child in view.children(one))


def _has_told(one: Seen) -> bool:
    return one.core is not None or one.actor is not None or one.process.title.startswith("ray::")
