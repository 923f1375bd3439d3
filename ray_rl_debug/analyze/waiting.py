"""The wait-for graph of a view under the law of waiting: all edges, what may become of each node, and where the waiting ends."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from ray_rl_debug.analyze.connections import endpoint_key, own_hosts
from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.fold import fold, unfold_root, unfold_solution, without_folded
from ray_rl_debug.analyze.kernel_calls import kernel_call
from ray_rl_debug.analyze.kinds_of_places import WAITS_FOR_RAY
from ray_rl_debug.analyze.lost_ends import sees_all_below
from ray_rl_debug.analyze.nodes import NodeKind, kind_of, name_of
from ray_rl_debug.analyze.on_demand import OnDemand
from ray_rl_debug.analyze.outlook import activity_of
from ray_rl_debug.analyze.pace import still_in_time
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.rank_counters import Joined
from ray_rl_debug.analyze.restarts import FRESH_S, fails_again, restarting_s, tried_in_vain, words
from ray_rl_debug.analyze.room import lacks_room
from ray_rl_debug.analyze.roots import Root, roots, worst_first
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.solve import DOUBT, Activity, Outlook, Solution, Wait, solve
from ray_rl_debug.analyze.unwoken_loops import unwoken
from ray_rl_debug.analyze.view import View
from ray_rl_debug.analyze.waits_children import is_unseen_child
from ray_rl_debug.model import gaps
from ray_rl_debug.model.report import Certainty

ANY = frozenset({
    Why.ASSUMED, Why.POLL, Why.RECEIVERS, Why.MESSAGE, Why.NEWS, Why.CHILD_QUEUE, Why.PIPE, Why.SEMAPHORE, Why.GIVERS, Why.INSIDE, Why.ROOM,
    Why.STARTS,
})  # fmt: skip
"""Waits that any one of several may end; in the others each target is waited for."""


class Graph(msgspec.Struct, frozen=True, kw_only=True):
    """Who waits for whom, and what may become of it."""

    edges: tuple[Edge, ...]
    """In the order of their ends."""
    roots: tuple[Root, ...]
    """Where the waiting ends: those that stand first, then those to blame if what was not seen stands, or if the sleepers never wake."""
    at_work: tuple[Root, ...]
    """Those that others wait for while they move."""
    solution: Solution
    by_source: Mapping[str, Sequence[Edge]]
    by_target: Mapping[str, Sequence[Edge]]
    by_why: Mapping[Why, Sequence[Edge]]

    def of(self, *whys: Why) -> Iterator[Edge]:
        """All waits of these kinds."""
        return (edge for why in whys for edge in self.by_why.get(why, ()))

    def out(self, node: str) -> Sequence[Edge]:
        return self.by_source.get(node, ())

    def into(self, nodes: Iterable[str]) -> Sequence[Edge]:
        """Waits of others for any of these nodes."""
        wanted = set(nodes)
        only = next(iter(wanted)) if len(wanted) == 1 else None
        if only is not None and all(e.target != only for e in self.out(only)):
            return self.by_target.get(only, ())
        return tuple(e for n in sorted(wanted) for e in self.by_target.get(n, ()) if e.source not in wanted)

    def hope(self, node: str) -> Outlook:
        """What may become of a node; one that nobody knows was not seen."""
        return self.solution.hope.get(node, Outlook.UNSEEN)

    def chain(self, root: Root) -> tuple[Edge, ...]:
        """The way down to a root, as edges."""
        found = []
        for step in root.chain:
            edge = next((e for e in self.out(step.wait.waiter) if e.target == step.target), None)
            found += [edge] if edge is not None else []
        return tuple(found)


def build_graph(view: View, edges: Iterable[Edge], joined: Joined) -> Graph:
    """Solve the edges of a view; of several edges between two nodes the surest stays. Pure.

    A stopped process waits for nobody, whatever its stack says: only who lets it go can end that. Nor does one whose loop nobody wakes.
    """
    held: dict[str, list[Edge]] = defaultdict(list)
    may_stop = view.like_parts(lambda shape: shape.is_stopped or shape.has_coroutines)
    stopped = {one.key for one in may_stop if one.is_stopped or unwoken(one) is not None}
    for edge in edges:
        source = edge.source
        if source not in stopped and (source != edge.target or edge.why is Why.QUEUED_CALL):
            held[source].append(edge)
    by_source = {source: some if len(some := held[source]) == 1 else _surest(some) for source in sorted(held)}
    kept = tuple(itertools.chain.from_iterable(by_source.values()))
    by_target: dict[str, list[Edge]] = defaultdict(list)
    by_why: dict[Why, list[Edge]] = defaultdict(list)
    for edge in kept:
        by_target[edge.target].append(edge)
        by_why[edge.why].append(edge)
    others = {node: _others(view, node, by_source, by_target, joined) for node in sorted({*by_source, *by_target} - view.seen.keys())}
    activities = OnDemand(others, view.seen, lambda key: activity_of(view, view.seen[key], by_source.get(key, ()), by_target.get(key, ()), joined))
    solution, ends = solve_edges(activities, kept, by_source, by_target)
    return Graph(
        edges=kept,
        roots=tuple(r for r in ends if r.hope is not Outlook.MOVES),
        at_work=tuple(r for r in ends if r.hope is Outlook.MOVES),
        solution=solution,
        by_source=by_source,
        by_target=dict(by_target),
        by_why=dict(by_why),
    )


def solve_edges(
    activities: Mapping[str, Activity], edges: Sequence[Edge], by_source: Mapping[str, Sequence[Edge]], by_target: Mapping[str, Sequence[Edge]]
) -> tuple[Solution, tuple[Root, ...]]:
    """What becomes of all activities, and all roots of any hope that keep somebody; those that are alike are solved once.

    Who waits for nobody and keeps nobody, as most processes of a machine do, is not asked about: what its own facts say holds.
    """
    linked = [known for name in dict.fromkeys((*by_source, *by_target)) if (known := activities.get(name)) is not None]
    folded = fold(linked, by_source, by_target)
    heads = [a for a in linked if a.id not in folded.head]
    solution = solve(heads, as_waits(without_folded(edges, folded)))
    ends = sorted([unfold_root(r, folded) for r in roots(solution, Outlook.MOVES) if r.waiters or r.is_cycle], key=worst_first)
    return unfold_solution(solution, activities, folded), tuple(ends)


def _surest(edges: Sequence[Edge]) -> list[Edge]:
    """Of the waits of one node the surest for each other, in the order of their ends."""
    best: dict[str, Edge] = {}
    for edge in edges:
        other = best.get(edge.target)
        if other is None or _surest_first(edge) < _surest_first(other):
            best[edge.target] = edge
    return [best[target] for target in sorted(best)]


def _surest_first(edge: Edge) -> tuple[int, str]:
    return DOUBT[edge.certainty], edge.words


def as_waits(edges: Iterable[Edge]) -> Iterator[Wait]:
    """The edges as waits; those of one source that are alternatives are one."""
    alternatives: dict[tuple[str, Why | str, str], list[Edge]] = defaultdict(list)
    for edge in edges:
        if edge.among:
            alternatives[(edge.source, edge.among, "")].append(edge)
        elif edge.why in ANY or edge.op == "ray.wait" or _is_queued_behind_lane(edge):
            alternatives[(edge.source, edge.why, edge.op)].append(edge)
        else:
            yield Wait(waiter=edge.source, any_of=(edge.target,), why=edge.words, evidence=edge.evidence, certainty=edge.certainty)
    for (source, _, _), held in alternatives.items():
        surest = min(held, key=lambda e: DOUBT[e.certainty])
        targets = tuple(e.target for e in held)
        yield Wait(waiter=source, any_of=targets, why=surest.words, evidence=surest.evidence, certainty=surest.certainty)


def _is_queued_behind_lane(edge: Edge) -> bool:
    """Behind which of an actor's lanes a call is queued is not known: any of them may give way."""
    return edge.why is Why.QUEUED_CALL and kind_of(edge.target) is NodeKind.LANE


def _others(view: View, node: str, by_source: Mapping[str, Sequence[Edge]], by_target: Mapping[str, Sequence[Edge]], joined: Joined) -> Activity:
    """What is no collected process."""
    kind = kind_of(node)
    sure = Certainty.LIKELY
    if node in joined.still:
        return Activity(id=node, outlook=Outlook.STANDS, reason="its counters stand still", certainty=joined.still[node])
    if kind is NodeKind.ACTOR:
        actor = view.actors.get(name_of(node))
        if actor is not None and (tried := tried_in_vain(view, actor)) is not None:
            return Activity(id=node, outlook=Outlook.STANDS, reason=words(tried), certainty=sure)
        if actor is not None and (since_s := restarting_s(view, actor)) is not None and since_s < FRESH_S:
            return Activity(id=node, outlook=Outlook.WAKES, reason=f"its restart began {since_s:.0f} s ago")
        if actor is None or actor.state == "ALIVE":
            return Activity(id=node, outlook=Outlook.UNSEEN, reason="its process was not seen")
        sure = Certainty.PROVEN if actor.state == "DEAD" else Certainty.LIKELY
        if actor.state == "RESTARTING" and restarting_s(view, actor) is None and not lacks_room(view, actor):
            sure = Certainty.POSSIBLE  # its restart may have begun just now
        return Activity(id=node, outlook=Outlook.STANDS, reason=f"it is {actor.state}", certainty=sure)
    if kind is NodeKind.TASK and (task := view.tasks.get(name_of(node))) is not None:
        if fails_again(task):
            return Activity(id=node, outlook=Outlook.STANDS, reason=words(task), certainty=sure)
        if task.is_running:
            return Activity(id=node, outlook=Outlook.UNSEEN, reason="its process was not seen")
    if kind is NodeKind.GONE:
        return Activity(id=node, outlook=Outlook.STANDS, reason="it is gone", certainty=Certainty.PROVEN)
    if kind is NodeKind.ADDRESS:
        return _service(view, node, [view.seen[e.source] for e in by_target[node] if e.source in view.seen])
    if kind is NodeKind.RANK and nobody_starts(view, [view.seen[e.source].identity.job_id for e in by_target[node] if e.source in view.seen]):
        return Activity(id=node, outlook=Outlook.STANDS, reason="no process starts it", certainty=sure)
    if kind in (NodeKind.PLACEMENT_GROUP, NodeKind.TASK, NodeKind.COMMUNICATOR) or node in by_source:
        return Activity(id=node, outlook=Outlook.STANDS, reason="it was not started", certainty=sure)
    return Activity(id=node, outlook=Outlook.UNSEEN, reason="it was not seen")


def nobody_starts(view: View, jobs: Sequence[str | None]) -> bool:
    """Was all seen, is nothing of the job being started, and do those who could start more wait for what is there?"""
    ray, job_id = view.ray, next(iter(jobs), None)
    if ray is None or any(g.id in (gaps.NODE_SILENT, gaps.RAY_TABLES) for g in view.snapshot.gaps):
        return False
    starting = any(a.job_id == job_id and a.state != "DEAD" and (a.state != "ALIVE" or a.actor_id not in view.by_actor) for a in ray.actors)
    pending = any(g.state not in ("CREATED", "REMOVED") for g in ray.placement_groups)
    drivers = [s for s in view if s.process.kind == "driver" and s.identity.job_id in (job_id, None)]
    waiting = all(d.kind in WAITS_FOR_RAY and d.motion is Motion.FROZEN for d in drivers)
    return bool(drivers) and waiting and not starting and not pending


def _has_unread_sockets(view: View) -> bool:
    """Were connections read, and not those of some process that lives?"""
    unread = [one.process.sockets is None for one in view if not one.has_ended]
    return any(unread) and not all(unread)


def _lacks_children(view: View) -> bool:
    """Is a process known by its number alone, as whose end another one waits for?"""
    kernels = ((one, thread.kernel) for one in view if (thread := one.telling) is not None)
    return any(kernel_call(k) == "wait" and k is not None and is_unseen_child(view, one, k.syscall_arg0) for one, k in kernels)


def _lacks_brother(view: View, one: Seen) -> bool:
    """Was not every process seen that its parent has started?"""
    parent = view.seen.get(view.by_node_pid.get((one.node.name, one.process.ppid or 0), ""))
    return parent is not None and parent.process.child_count is not None and not sees_all_below(view, parent)


def _service(view: View, node: str, clients: Sequence[Seen]) -> Activity:
    """A service works unseen where its process was not looked at."""
    address = name_of(node)
    sockets = [s for one in clients for s in one.process.sockets or () if s.remote == address]
    is_here = any(endpoint_key(one.node.name, address)[0] in own_hosts(view) for one in clients)
    if is_here and (view.once(_has_unread_sockets) or view.once(_lacks_children)):
        return Activity(id=node, outlook=Outlook.UNSEEN, reason="it is on a machine where not all connections were read")
    if is_here and any(_lacks_brother(view, one) for one in clients):
        return Activity(id=node, outlook=Outlook.UNSEEN, reason="it may be a process of the same program that was not seen")
    quiet = [s.quiet_s for s in sockets if s.quiet_s is not None]
    said = still_in_time(view.snapshot, min(quiet)) if quiet else None
    if said is not None and not any(s.tx_queue_bytes for s in sockets):
        return Activity(id=node, outlook=Outlook.WAKES, reason=f"it has been {said}")
    if not quiet and not any(s.tx_queue_bytes for s in sockets):
        return Activity(id=node, outlook=Outlook.UNSEEN, reason="since when it has been quiet was not read")
    return Activity(id=node, outlook=Outlook.STANDS, reason="no answer has come", certainty=Certainty.LIKELY)
