"""Edges of lanes to those that may end their wait inside of the process: other lanes of it, and processes whose next call may do so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

from ray_rl_debug.analyze.coroutines import is_ray_call
from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.lanes import is_old, waits_within
from ray_rl_debug.analyze.library_frames import short_name
from ray_rl_debug.analyze.lost_threads import LOST_CALLER, lost_caller
from ray_rl_debug.analyze.nodes import NodeKind
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.thread_scores import executes
from ray_rl_debug.analyze.view import View
from ray_rl_debug.analyze.waits_calls import callers, callers_so_far, other_methods
from ray_rl_debug.model.report import Certainty


def lane_edges(view: View, known: Sequence[Edge]) -> Iterator[Edge]:
    """Any one of the targets may end the wait; `known` are the edges found so far."""
    for lane in view.like_parts(lambda shape: shape.part is NodeKind.LANE):
        if lane.lane_of is None or not waits_within(lane):
            continue
        yield from _to_lost_callers(view, lane, view.seen[lane.lane_of])
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


def _to_lost_callers(view: View, lane: Seen, process: Seen) -> Iterator[Edge]:
    """To an actor that has made calls of other methods by a thread that it has no more, while such calls of its fellows end no wait."""
    methods = other_methods(view, process, [t for t in lane.process.async_tasks or () if is_ray_call(t)])
    for key in sorted(callers_so_far(view, process, methods) or ()) if methods and process.motion is Motion.MOVING else ():
        lost = lost_caller(view, view.seen[key]) if key in view.seen else None
        if lost is not None:
            said = f"calls of {', '.join(methods[:_SHOWN])} come from its fellows, and its own thread in {lost.function} has ended"
            at = f"waits at {lane.ends[0].at}" if lane.ends else lane.at()
            evidence = f"a call of {process.identity.label} {at}; {view.seen[key].identity.label} has called it so far: {said}"
            yield Edge(source=lane.key, target=key, why=Why.GIVERS, op=LOST_CALLER, evidence=evidence, certainty=Certainty.LIKELY)


_SHOWN = 3
"""Methods that the evidence names."""


def _others_go_on(view: View, process: Seen) -> bool:
    """Has a call that goes on been under way since before the window? Younger ones come and go."""
    lanes = view.lanes(process.key)
    standing = {n for lane in lanes if lane.core is not None for n in lane.core.running_task_ids}
    others = [n for n in (process.core.running_task_ids if process.core is not None else ()) if n not in standing]
    if any(n in view.tasks and is_old(process, view.tasks[n]) for n in others):
        return True
    return any(n not in view.tasks for n in others) and not _come_and_go(view, process, {t.tid for lane in lanes for t in lane.threads})


def _come_and_go(view: View, process: Seen, standing: Set[int | None]) -> bool:
    """Ray's table may be older than a call that runs. Are all threads with calls in methods of which a call has finished during the window?"""
    history = view.ray.history if view.ray is not None else ()
    since_s = process.node.started_time_s
    finished = {h.name.rpartition(".")[2] for h in history if h.last_end_time_s is not None and h.last_end_time_s >= since_s}
    threads = [t for t in process.threads if t.tid not in standing and executes(t.sample, t.frames)]
    return bool(threads) and all(any(short_name(f) in finished for f, _, _ in t.place.path) for t in threads)
