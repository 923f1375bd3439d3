"""Edges of lanes to those that may end their wait inside of the process: other lanes of it, and processes whose next call may do so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ray_rl_debug.analyze.graph import Edge, Why
from ray_rl_debug.analyze.lanes import is_old, waits_within
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.view import View
from ray_rl_debug.analyze.waits_poll import callers
from ray_rl_debug.model.report import Certainty


def lane_edges(view: View, known: Sequence[Edge]) -> Iterator[Edge]:
    """Any one of the targets may end the wait; `known` are the edges found so far."""
    for lane in view.seen.values():
        if lane.lane_of is None or not waits_within(lane):
            continue
        for other in view.lanes(lane.lane_of):
            if other is not lane:
                evidence = f"it {lane.at()}; another call of it, {other.identity.method}, {other.at()}"
                yield Edge(source=lane.key, target=other.key, why=Why.INSIDE, evidence=evidence, certainty=Certainty.LIKELY)
        if _others_go_on(view, view.seen[lane.lane_of]):
            evidence = f"it {lane.at()}; another call of its process goes on"
            yield Edge(source=lane.key, target=lane.lane_of, why=Why.INSIDE, evidence=evidence, certainty=Certainty.LIKELY)
        for node, doing in callers(view, lane, known):
            evidence = f"it {lane.at()}, and may wait for another call; {doing}"
            yield Edge(source=lane.key, target=node, why=Why.INSIDE, evidence=evidence, certainty=Certainty.LIKELY)


def _others_go_on(view: View, process: Seen) -> bool:
    """Has a call that goes on been under way since before the window? Younger ones come and go."""
    standing = {n for lane in view.lanes(process.key) if lane.core is not None for n in lane.core.running_task_ids}
    others = [n for n in (process.core.running_task_ids if process.core is not None else ()) if n not in standing]
    return any(n not in view.tasks or is_old(process, view.tasks[n]) for n in others)
