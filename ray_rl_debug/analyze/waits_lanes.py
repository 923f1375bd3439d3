"""Edges of lanes to those that may end their wait inside of the process: other lanes of it, and processes whose next call may do so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ray_rl_debug.analyze.graph import Edge, Why
from ray_rl_debug.analyze.lanes import waits_within
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
        if not view.all_stand(view.seen[lane.lane_of]):
            evidence = f"it {lane.at()}; another call of its process goes on"
            yield Edge(source=lane.key, target=lane.lane_of, why=Why.INSIDE, evidence=evidence, certainty=Certainty.LIKELY)
        for node, doing in callers(view, lane, known):
            evidence = f"it {lane.at()}, and may wait for another call; {doing}"
            yield Edge(source=lane.key, target=node, why=Why.INSIDE, evidence=evidence, certainty=Certainty.LIKELY)
