"""Edges between fellows whose stacks may not be read, or tell no wait: from titles, states, CPU times and Ray's actor table alone.

Actors of one class that run the same method are taken for ranks of one group. When few of them run or sit in the kernel while the others
sleep, the others wait for those; when all sleep and one of their class died, they wait for the dead one. Where cards are at work CPU time
tells nothing of this: ranks that wait in NCCL may run, and those that compute may sleep.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.nodes import NodeKind, node_of
from ray_rl_debug.analyze.pauses import is_within, looks_again, outermost, sleeps
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.view import View
from ray_rl_debug.analyze.worlds import dead_twins
from ray_rl_debug.model.report import Certainty

BUSY_SHARE = 0.5
"""Of one core: above it a process runs all the time."""
ASLEEP_SHARE = 0.05
"""Below it, it waits; Ray's own threads need about one percent."""


def unseen_edges(view: View) -> Iterator[Edge]:
    """Edges among actors of one class and method, none of which has a stack."""
    for group in _groups(view):
        asleep = [m for m in group if m.process.state == "S" and _share(m) < ASLEEP_SHARE]
        others = [m for m in group if m.process.state == "D" or _share(m) > BUSY_SHARE]
        if not asleep or any(m.node.gpus for m in group) or len(others) + len(asleep) < len(group):
            continue
        if 2 * len(others) < len(group):
            yield from (_edge(waiter, one) for one in others for waiter in asleep)
        if not others:
            yield from _to_the_dead(view, asleep)


def sibling_edges(view: View, edges: Sequence[Edge]) -> Iterator[Edge]:
    """Edges among actors of one class and method with stacks: most stand still at one line that tells no wait, a few elsewhere.

    What the line waits for is not known; that its fellows at the same line are no culprits is.
    """
    if len(view.at(Kind.CODE)) < 2:
        return
    told = {e.source for e in edges}
    for group in _groups(view, with_stacks=True):
        places: dict[tuple[tuple[str, str, int | None], ...], list[Seen]] = defaultdict(list)
        for one in group:
            if one.key not in told and one.kind is Kind.CODE and one.motion is Motion.FROZEN and one.place is not None:
                places[one.place.path].append(one)
        alike = max(places.values(), key=len, default=[])
        if len(alike) < 2:
            continue
        here = {one.key for one in alike}
        others = [one for one in group if one.key not in here and not one.is_idle and one.motion is not Motion.MOVING]
        if len(alike) > len(others):
            for waiter in alike:
                yield from (_sibling_edge(waiter, one, len(alike)) for one in others)


def programs_edges(view: View, edges: Sequence[Edge]) -> Iterator[Edge]:
    """Edges among children of one parent that run the same function: most look again and again at one line, the few others stand elsewhere.

    Those who look may wait for a file or a flag of the others. Who rests in the loop of the program itself, or where the next piece of work comes
    from, waits for work; and of one that works, sleeps or moves nothing can be said.
    """
    told = {e.source for e in edges}
    for group in _programs(view):
        places: dict[tuple[tuple[str, str, int | None], ...], list[Seen]] = defaultdict(list)
        for one in group:
            if one.key not in told and one.place is not None and looks_again(one) and is_within(one.place):
                places[one.place.path].append(one)
        alike = max(places.values(), key=len, default=[])
        here = {one.key for one in alike}
        others = [one for one in group if one.key not in here]
        stand = all(one.motion is Motion.FROZEN and not one.is_idle and not sleeps(one) for one in others)
        if len(alike) > max(1, len(others)) and stand:
            for waiter in alike:
                for one in others:
                    evidence = f"{len(alike)} programs of one parent look again and again at the same line; {one.identity.label} {one.at()}"
                    yield Edge(source=waiter.key, target=one.key, why=Why.POLL, evidence=evidence, certainty=Certainty.POSSIBLE)


def _programs(view: View) -> Iterator[list[Seen]]:
    """Children of one parent with stacks, by the function that each of them runs as a whole."""
    found: dict[tuple[str, int | None, str, str], list[Seen]] = defaultdict(list)
    for one in view.like(lambda shape: shape.process == "child"):
        if one.place is not None and len(one.place.path) > 1 and not one.is_stopped:
            function, file, _ = outermost(one.place)
            found[(one.node.name, one.process.ppid, function, file)].append(one)
    yield from (members for _, members in sorted(found.items(), key=lambda f: f[1][0].key) if len(members) > 2)


def _sibling_edge(waiter: Seen, one: Seen, count: int) -> Edge:
    evidence = f"{count} that run {one.identity.method} stand at the same line, {one.identity.label} {one.at()}"
    return Edge(source=waiter.key, target=one.key, why=Why.SAME_CALL, evidence=evidence, certainty=Certainty.POSSIBLE)


def _groups(view: View, *, with_stacks: bool = False) -> Iterator[list[Seen]]:
    found: dict[tuple[str | None, str, str], list[Seen]] = defaultdict(list)
    for one in view.like(lambda shape: bool(shape.kinds) is with_stacks and shape.process == "ray-worker" and not shape.is_stopped):
        i = one.identity
        if i.class_name and i.method:
            found[(i.job_id, i.class_name, i.method)].append(one)
    yield from (members for _, members in sorted(found.items(), key=lambda f: f[1][0].key) if len(members) > 1)


def _share(one: Seen) -> float:
    """Of one core, during the window; between the two limits when it is not known."""
    window_s, cpu_s = one.process.window_s, one.process.cpu_s
    return cpu_s / window_s if window_s and cpu_s is not None else (BUSY_SHARE + ASLEEP_SHARE) / 2


def _edge(waiter: Seen, one: Seen) -> Edge:
    doing = "sits in the kernel (state D)" if one.process.state == "D" else f"used {100 * _share(one):.0f} % of a core"
    evidence = f"both run {one.identity.method}; {one.identity.label} {doing}, {waiter.identity.label} sleeps"
    return Edge(source=waiter.key, target=one.key, why=Why.SAME_CALL, evidence=evidence, certainty=Certainty.LIKELY)


def _to_the_dead(view: View, asleep: Sequence[Seen]) -> Iterator[Edge]:
    for actor in dead_twins(view, asleep):
        evidence = f"{actor.class_name} is {actor.state}" + (f": {actor.death}" if actor.death else "")
        for waiter in asleep:
            yield Edge(
                source=waiter.key, target=node_of(NodeKind.ACTOR, actor.actor_id), why=Why.SAME_CALL, evidence=evidence, certainty=Certainty.LIKELY
            )
