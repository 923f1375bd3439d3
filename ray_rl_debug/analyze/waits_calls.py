"""Edges of actors that only keep what calls bring: a mailbox, a barrier, a queue. A call that waits there waits for whoever makes another one.

Nothing records who that would be. What can be known: which methods of the actor have finished so far, and who is left that could call one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from ray_rl_debug.analyze.connections import is_ray_port, is_rays, socket_owners
from ray_rl_debug.analyze.coroutines import LOCKS, SERVES_RANK, End, is_ray_call, own_frame, rank, serves
from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.kinds_of_places import WAITS_FOR_RAY, Kind
from ray_rl_debug.analyze.known_edges import KnownEdges, all_waiters, waiters
from ray_rl_debug.analyze.lost_rows import lacks_dead_actor, lacks_ended_call
from ray_rl_debug.analyze.nodes import NodeKind, kind_of, name_of, node_of
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.view import View
from ray_rl_debug.analyze.waits_async import HANDED_OVER
from ray_rl_debug.analyze.waits_children import to_unseen
from ray_rl_debug.model import gaps
from ray_rl_debug.model.report import Certainty
from ray_rl_debug.model.snapshot import TASK_CALLER, AsyncTask, RayTask

_SET_BY_CALLS = frozenset({"event", "condition"})
"""What coroutines of an actor await that another call to it sets by design."""
FAILED_CALL = "a call that has failed"
"""What the wait for somebody is called whose own call has failed before it could make the awaited one."""
_MOST_NAMED = 3
"""Methods that the evidence names."""


def call_edges(view: View, known: Sequence[Edge]) -> Iterator[Edge]:
    """Edges of actors whose calls stand where another call may let them go on, in threads or as coroutines; `known` are the edges found so far.

    Those at work may make that call, and whoever has a call of its own to end and does not wait for this actor, not even by way of others. Where
    calls of other methods have finished before, and nobody is left but those who wait here themselves, it is one of these: then they wait for
    each other.
    """
    known = KnownEdges(known)  # one such actor says nothing of who may call the next
    for one in view.like(lambda shape: shape.has_coroutines or Kind.EVENT in shape.kinds):
        stored, others = _stored_calls(view, one)
        if others:
            said = f"{_count(len(stored))} for a call of another method (so far {', '.join(others[:_MOST_NAMED])})"
            found = _edges_to_callers(view, one, known, said, callers_so_far(view, one, others))
            read_once = any(t.stable is None for t in stored)
            yield from (msgspec.structs.replace(e, certainty=Certainty.POSSIBLE) for e in found) if read_once else found
            continue
        beside = _methods_beside_thread(view, one)
        so_far = callers_so_far(view, one, beside) if beside else frozenset[str]()
        if so_far is None and view.once(_tells_callers):
            yield to_unseen(one, f"what calls of {beside[0]} bring", Why.INSIDE)
        for node, doing in _free_callers(view, one, known, so_far) if so_far else ():
            evidence = f"its call waits for a call of another method (so far {', '.join(beside[:_MOST_NAMED])}); {doing}"
            yield Edge(source=one.key, target=node, why=Why.INSIDE, evidence=evidence, certainty=Certainty.LIKELY)
        yield from _edges_to_known_callers(view, one, known)
        calls, at = _standing_calls(one)
        for node, doing in callers(view, one, known) if at is not None else ():
            evidence = f"{_count(calls)} at {at} for another call; {doing}"
            yield Edge(source=one.key, target=node, why=Why.POLL, evidence=evidence, certainty=Certainty.POSSIBLE)


def _edges_to_callers(view: View, one: Seen, known: Sequence[Edge], said: str, so_far: frozenset[str] | None) -> Iterator[Edge]:
    """`so_far` are the nodes that have made such calls; None where that is not known."""
    free = _free_callers(view, one, known, so_far) if so_far is not None else [*callers(view, one, known)]
    ended_s = _last_ended_s(view, one, known) if not free and so_far else None
    failed = _failed_callers(view, so_far, ended_s) if not free and so_far else []
    if failed:
        sure = Certainty.LIKELY if ended_s is not None and nobody_is_left(view, one, known) else Certainty.POSSIBLE
        for node, doing in failed:
            yield Edge(source=one.key, target=node, why=Why.INSIDE, op=FAILED_CALL, evidence=f"{said}; {doing}", certainty=sure)
        return
    idle = [] if free else [o for o in _idle_fellows(view, one, known) if so_far is None or o.key in so_far]
    if idle:
        said += f"; {len(idle)} of those who call it {'is' if len(idle) == 1 else 'are'} idle, and may have left it out"
    sure = Certainty.POSSIBLE if idle or (so_far is None and view.once(_tells_callers)) else Certainty.LIKELY
    for node, doing in free or _waiting_callers(view, one, known, so_far):
        yield Edge(source=one.key, target=node, why=Why.INSIDE, evidence=f"{said}; {doing}", certainty=sure)


def _edges_to_known_callers(view: View, one: Seen, known: Sequence[Edge]) -> Iterator[Edge]:
    """Of an actor that works inside too, and whose coroutines wait for what a call may set: to those who have made its other calls so far.

    Whoever waits for it itself is left out.
    """
    ends = [e for e in one.ends if rank(e) < SERVES_RANK] if one.is_idle and one.process.kind == "ray-worker" else []
    lent = [e for e in ends if e.is_still and _is_lent(e)]
    at = [e.at for e in ends if e.is_still and (e.awaited.kind in _SET_BY_CALLS or e in lent)]
    others = other_methods(view, one, [t for t in one.process.async_tasks or () if is_ray_call(t)]) if at else []
    so_far = callers_so_far(view, one, others) if others else None
    found = _free_callers(view, one, known, so_far) if so_far else []
    if others and so_far is None and view.once(_tells_callers):
        yield to_unseen(one, f"what calls of {others[0]} bring", Why.INSIDE)
    if others and lent and not found:
        found = [*callers(view, one, known)] if so_far is None else _that_may_hold(view, one, known, so_far)
    for node, doing in found:
        evidence = f"waits at {at[0]} for what a call may {'give back' if lent else 'set'} (so far {', '.join(others[:_MOST_NAMED])}); {doing}"
        yield Edge(source=one.key, target=node, why=Why.INSIDE, evidence=evidence, certainty=Certainty.LIKELY)


def _is_lent(end: End) -> bool:
    """Is it a lock or a semaphore that calls take and other calls may give back? With ``async with`` a coroutine gives back its own."""
    return end.awaited.kind in LOCKS and not end.awaited.holders and all(_takes_for_others(t) for t in end.tasks)


def _takes_for_others(task: AsyncTask) -> bool:
    names = [f.function.rpartition(".")[2] for f in task.chain]
    return is_ray_call(task) and "__aenter__" not in names


def _that_may_hold(view: View, one: Seen, known: Sequence[Edge], so_far: frozenset[str]) -> list[tuple[str, str]]:
    """Of those who gave something back so far, the ones that wait for the actor by way of others: whoever waits here itself still wants one."""
    behind = sorted((all_waiters(one.key, known) & so_far) - waiters(one.key, known) - {one.key})
    holding = [view.seen[key] for key in behind if key in view.seen and _runs_call(view.seen[key])]
    return [(other.key, f"{other.identity.label} may have one, and {_doing(other)}") for other in holding]


def _runs_call(one: Seen) -> bool:
    return not one.is_stopped and (one.process.kind == "driver" or bool(one.core and one.core.running_task_ids))


def _free_callers(view: View, one: Seen, known: Sequence[Edge], so_far: frozenset[str]) -> list[tuple[str, str]]:
    """Those who have made such calls so far and do not wait for the actor; also an actor whose coroutines or own threads made them, and plain
    tasks that are not begun, or run where nobody looked.
    """
    found = {node: doing for node, doing in callers(view, one, known) if node in so_far}
    behind = all_waiters(one.key, known)
    plain = {node: view.tasks[name_of(node)] for node in so_far - behind if kind_of(node) is NodeKind.TASK}
    found |= {node: f"{t.name} {'runs in a process that was not seen' if t.is_running else 'is not begun'}" for node, t in plain.items()}
    for key in sorted(so_far - found.keys() - behind - {one.process_key}):
        other = view.seen.get(key)
        if other is not None and not other.is_stopped and other.core is not None and (other.core.running_task_ids or works_inside(other)):
            found[key] = f"{other.identity.label} {_doing(other)}"
    return sorted(found.items())


def callers_so_far(view: View, one: Seen, methods: Sequence[str]) -> frozenset[str] | None:
    """Nodes that have made calls of these methods of an actor; None where Ray's history does not tell them all.

    Of a plain task that made some, those of its name that have not ended: each has a process or waits for one.
    """
    asked = view.once(_callers_of)
    key = (one.identity.class_name, one.identity.job_id, tuple(methods))
    if key not in asked:
        asked[key] = _find_callers(view, *key)
    return asked[key]


def _callers_of(_: View) -> dict[tuple[str | None, str | None, tuple[str, ...]], frozenset[str] | None]:
    """Filled as they are asked for: the actors of one class have been called by the same."""
    return {}


def _tells_callers(view: View) -> bool:
    """Does Ray's history tell of some method who has called it? Then of one of which it does not, somebody may have who is not known."""
    return any(calls.callers is not None for calls in (view.ray.history if view.ray is not None else ()))


def _find_callers(view: View, class_name: str | None, job_id: str | None, methods: Sequence[str]) -> frozenset[str] | None:
    names = {f"{class_name}.{m}" for m in methods}
    found: set[str] = set()
    for calls in view.ray.history if view.ray is not None else ():
        if calls.name in names and calls.count:
            if calls.callers is None:
                return None
            found.update(calls.callers)
    functions = {c.removeprefix(TASK_CALLER) for c in found if c.startswith(TASK_CALLER)}
    plain = [t.task_id for t in view.tasks.values() if t.kind == "NORMAL_TASK" and t.name in functions]
    running = view.once(_runners)
    tasks = {running[t].key if t in running else node_of(NodeKind.TASK, t) for t in plain}
    actors = {view.by_actor.get(c) or node_of(NodeKind.ACTOR, c) for c in found - {_DRIVER} if not c.startswith(TASK_CALLER)}
    drivers = {o.key for o in view if o.process.kind == "driver" and o.identity.job_id == job_id} if _DRIVER in found else set[str]()
    return frozenset(actors | drivers | tasks)


def _last_ended_s(view: View, one: Seen, known: Sequence[Edge]) -> float | None:
    """When a call like those that wait for an actor ended for the last time; None where that is not known."""
    waiting = [view.seen[key] for key in all_waiters(one.key, known) if key in view.seen and key != one.key]
    names = {view.tasks[t].name for w in waiting for t in (w.core.running_task_ids if w.core is not None else ()) if t in view.tasks}
    ended = (h.last_end_time_s for h in (view.ray.history if view.ray is not None else ()) if h.name in names)
    return max((s for s in ended if s is not None), default=None)


def _failed_callers(view: View, so_far: frozenset[str], ended_s: float | None) -> list[tuple[str, str]]:
    """Idle actors that made such calls so far, and whose own call has failed since those who wait here ended theirs for the last time."""
    idle = [view.seen[key] for key in sorted(so_far) if key in view.seen and view.seen[key].is_idle and not view.seen[key].is_stopped]
    found = [(o.key, failed_call(view, o)) for o in idle]
    late = [(key, t) for key, t in found if t is not None and failed_s(t) >= (ended_s or 0.0)]
    return [(key, f"{view.seen[key].identity.label}, which made some, is idle: its call {t.name} has failed ({t.error})") for key, t in late]


def failed_call(view: View, one: Seen) -> RayTask | None:
    """The latest call of an actor that has failed, as Ray's tables tell."""
    mine = [t for t in (view.ray.failed if view.ray is not None else ()) if t.actor_id is not None and t.actor_id == one.identity.actor_id]
    return max(mine, key=failed_s, default=None)


def failed_s(task: RayTask) -> float:
    """When a call failed, by the clock of its node."""
    return task.state_times_s.get("FAILED", 0.0)


def nobody_is_left(view: View, one: Seen, known: Sequence[Edge]) -> bool:
    """Can no call come any more to an actor that waits for one? Everybody waits for it, or is idle and nobody calls that one either.

    Whoever serves others than Ray, has other threads, coroutines or children of its own, or was not seen, may call by itself.
    """
    ray, behind = view.ray, all_waiters(one.key, known)
    if ray is None or works_inside(one) or any(g.id in (gaps.NODE_SILENT, gaps.RAY_TABLES) for g in view.snapshot.gaps):
        return False
    so_far = callers_so_far(view, one, other_methods(view, one, [t for t in one.process.async_tasks or () if is_ray_call(t)]))
    if not so_far or lacks_dead_actor(view) or lacks_ended_call(view, so_far):
        return False  # who has called so far is not known, or what became of one: it may be anybody, also of another job
    others = [o for o in view if o.key not in behind and o.key != one.process_key]
    runs = {t for o in view if o.key in behind or o.key == one.key for t in (o.core.running_task_ids if o.core is not None else ())}
    under_way = [t for t in view.tasks.values() if t.kind != "DRIVER_TASK" and t.task_id not in runs]
    if under_way or any(a.actor_id not in view.by_actor for a in ray.actors if a.state != "DEAD"):
        return False
    return all(_only_waits_for_calls(view, o) for o in others) and not any(_goes_on_beside(view.seen[k]) for k in behind if k in view.seen)


def _goes_on_beside(one: Seen) -> bool:
    """Has one that waits another thread, or a coroutine that pauses? It may make calls meanwhile."""
    beside = [t for t in one.threads if t is not one.telling and t.place.path and t.score > 0 and t.place.kind not in WAITS_FOR_RAY]
    return bool(beside) or any(t.awaited is None or t.awaited.kind in ("sleep", "running", "ready") for t in one.process.async_tasks or ())


def _only_waits_for_calls(view: View, one: Seen) -> bool:
    """Is it a worker of Ray that has nothing under way, and that nothing but a call can wake?"""
    rests = one.process.kind == "ray-worker" and one.is_idle and not one.is_at_work and not one.is_stopped and one.core is not None
    if not rests or (one.core is not None and (one.core.running_task_ids or one.core.owned)) or works_inside(one):
        return False
    listens = [s for s in one.process.sockets or () if s.state == "LISTEN" and s.family != "unix" and not is_ray_port(view, s)]
    return not listens and only_ray_connects(view, one)


def _runners(view: View) -> dict[str, Seen]:
    """By task the process that runs it."""
    return {task_id: one for one in view for task_id in (one.core.running_task_ids if one.core is not None else ())}


_DRIVER = "driver"
"""What Ray's history calls every driver."""


def _idle_fellows(view: View, one: Seen, known: Sequence[Edge]) -> list[Seen]:
    """Idle actors of the classes of those who wait for it: one of them may have ended its call too early."""
    waiting = [view.seen[key].identity for key in waiters(one.key, known) if key in view.seen]
    classes = {(i.job_id, i.class_name) for i in waiting if i.class_name is not None}
    return [o for o in view if o.is_idle and not o.is_stopped and (o.identity.job_id, o.identity.class_name) in classes]


def _count(calls: int) -> str:
    return f"{calls} call{'s wait' if calls > 1 else ' waits'}"


def callers(view: View, one: Seen, known: Sequence[Edge]) -> Iterator[tuple[str, str]]:
    """Nodes that may call an actor next, and what they do: those at work, those that have a call to end and do not wait for it, the unseen."""
    behind, excepted = all_waiters(one.key, known), waiters(one.key, known) | {one.process_key}
    for other in view:
        if other.process.kind not in ("ray-worker", "driver") or other.key in excepted:
            continue
        if other.motion in (Motion.BUSY, Motion.MOVING) or (_has_call(other) and other.key not in behind):
            yield other.key, f"{other.identity.label} {_doing(other)}"
    for actor in view.ray.actors if view.ray is not None else ():
        if actor.state == "ALIVE" and actor.job_id == one.identity.job_id and actor.actor_id not in view.by_actor:
            yield node_of(NodeKind.ACTOR, actor.actor_id), f"the process of {actor.class_name} was not seen"


def _waiting_callers(view: View, one: Seen, known: Sequence[Edge], so_far: frozenset[str] | None) -> Iterator[tuple[str, str]]:
    """Those who wait for the actor, if several wait there or somebody behind them: of one alone nothing tells that it is the one who should call.

    Where Ray tells who has made such calls, only these.
    """
    behind = [view.seen[key] for key in sorted(all_waiters(one.key, known)) if key in view.seen and key != one.key]
    able = [other for other in behind if other.process.kind in ("ray-worker", "driver") and _has_call(other)]
    able = able if so_far is None else [other for other in able if other.key in so_far]
    if len(able) > 1 or (able and so_far is not None):
        yield from ((other.key, f"{other.identity.label} might make it, and {other.does()}") for other in able)


def _stored_calls(view: View, one: Seen) -> tuple[Sequence[AsyncTask], Sequence[str]]:
    """The calls of an actor that does nothing else but wait for other calls, and its other methods of which some have finished."""
    tasks = one.process.async_tasks
    if not tasks or not one.is_idle or one.is_stopped or one.process.kind != "ray-worker":
        return (), ()
    calls = [t for t in tasks if is_ray_call(t)]
    waiting = all(t.stable is not False and not t.timers and t.awaited is not None and t.awaited.kind in HANDED_OVER for t in calls)
    if not calls or not waiting or works_inside(one) or not only_ray_connects(view, one):
        return (), ()
    return calls, other_methods(view, one, calls)


def _methods_beside_thread(view: View, one: Seen) -> list[str]:
    """Other methods of which calls have finished, of an actor whose only call waits in a thread while no other thread of it does anything.

    Not where calls are queued behind it: then it runs one at a time.
    """
    own = [t for t in one.threads if t is not one.telling and t.place.path]
    runs_one = one.core is None or len(one.core.running_task_ids) == 1
    if one.kind is not Kind.EVENT or own or not runs_one or one.process.async_tasks or one.is_stopped or one.process.kind != "ray-worker":
        return []
    queued = any(t.actor_id == one.identity.actor_id and not t.is_running for t in view.tasks.values() if t.actor_id is not None)
    names = other_methods(view, one, ()) if not queued and only_ray_connects(view, one) else []
    return [name for name in names if name != one.identity.method]


def works_inside(one: Seen) -> bool:
    """Has an actor threads or coroutines of own code beside its calls? One of these may be what they wait for."""
    beside = any(own_frame(t) is not None and not is_ray_call(t) for t in one.process.async_tasks or ())
    return beside or any(t.place.path for t in one.threads)


def other_methods(view: View, one: Seen, calls: Sequence[AsyncTask]) -> list[str]:
    """Methods of an actor of which calls have finished, without those in which `calls` wait."""
    at = {f.function.rpartition(".")[2] for t in calls for f in t.chain}
    at |= {view.tasks[t].name.rpartition(".")[2] for t in (one.core.running_task_ids if calls and one.core is not None else ()) if t in view.tasks}
    prefix = f"{one.identity.class_name}."
    finished = [h.name for h in (view.ray.history if view.ray is not None else ()) if h.name.startswith(prefix) and h.count]
    names = [n.removeprefix(prefix) for n in finished]
    return [n for n in names if n not in at and not n.startswith("__")]


def only_ray_connects(view: View, one: Seen) -> bool:
    """Is nobody but Ray connected to it, and has it no children? Then only calls bring something."""
    owners, sockets = socket_owners(view), one.process.sockets
    if sockets is None or view.children(one):
        return False
    outer = [s for s in sockets if s.family.startswith("tcp") and s.state == "ESTABLISHED" and s.remote is not None]
    inner = {(one.node.name, s.peer_inode) for s in sockets if s.family == "unix" and s.peer_inode}
    held = view.once(_unix_ends)
    return all(is_rays(view, one, s, owners) for s in outer) and all(held.get(end, one.key) == one.key for end in inner)


def _unix_ends(view: View) -> dict[tuple[str, int], str]:
    """Who holds an end of a Unix socket, by machine and inode. Ray's own processes are not among those that are judged."""
    return {(one.node.name, s.inode): one.key for one in view for s in one.process.sockets or () if s.family == "unix" and s.inode is not None}


def _standing_calls(one: Seen) -> tuple[int, str | None]:
    """How many calls of Ray it runs, and where they stand if all of them wait for what another call may bring; None if not.

    One call alone in a thread may wait for a thread of its own actor. Coroutines of the actor itself are asked: if any of its own is left that
    waits for no such thing, that one may set it.
    """
    at = [t.place.path[0][0] for t in one.threads if t.place.kind is Kind.EVENT and t.place.path]
    told = len(one.core.running_task_ids) if one.core else 0
    calls = told or (len(at) if one.process.kind == "ray-worker" else 0)
    if calls > 1 and len(at) >= calls:
        return calls, at[0]
    ends = [e for e in one.ends if rank(e) < SERVES_RANK] if one.is_idle else []
    tasks = {t.address for e in ends if e.is_still and e.awaited.kind in _SET_BY_CALLS for t in e.tasks}
    own = [t for t in one.process.async_tasks or () if not serves(t)]
    asked = tasks and any(is_ray_call(t) for t in own)
    return (len(own), ends[0].at) if asked and all(t.address in tasks or t.awaited is None for t in own) else (0, None)


def _has_call(one: Seen) -> bool:
    """Does it run a call of Ray, or the driver's own code, in which another call may follow? A driver's coroutines run in a loop that looks idle."""
    runs = one.process.kind == "driver" or one.core is None or bool(one.core.running_task_ids) or one.identity.method is not None
    at_rest = one.is_idle and not (one.process.kind == "driver" and any(rank(e) < SERVES_RANK for e in one.ends))
    return runs and not at_rest and not one.is_stopped


def _doing(other: Seen) -> str:
    return f"runs {other.identity.method}" if other.identity.method else other.at()
