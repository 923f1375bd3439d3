"""Edges from Ray: who waits for which task, actor, placement group.

A process in ``ray.get`` waits for exact ObjectRefs (read from its memory); the first 24 bytes of an ObjectRef are the producing task.
Ray's live worker statistics tell which process runs that task, or behind which actor's running call it is queued. Without memory, the
unfinished tasks that the process submitted stand in, less surely: submitted is not waited for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from ray_rl_debug.analyze.deaths import how_dead
from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.framework_places import GROUP_WAIT
from ray_rl_debug.analyze.handlers import lacks_setter
from ray_rl_debug.analyze.kinds_of_places import WAITS_FOR_RAY, Kind
from ray_rl_debug.analyze.nodes import NodeKind, name_of, node_of
from ray_rl_debug.analyze.pauses import lacks_stack
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.restarts import fails_again, tried_in_vain, words
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.view import View
from ray_rl_debug.analyze.waits_children import to_unseen
from ray_rl_debug.model.report import Certainty
from ray_rl_debug.model.snapshot import OwnedTask, RayActor, RayPlacementGroup, RayTask

_TASK_HEX = 48
_ACTOR_PENDING = frozenset({"DEPENDENCIES_UNREADY", "PENDING_CREATION", "RESTARTING"})
_UNSCHEDULED = frozenset({"PENDING_NODE_ASSIGNMENT", "PENDING_OBJ_STORE_MEM_AVAIL"})
NEEDS_ARGS = "PENDING_ARGS_AVAIL"
"""State of a task one of whose arguments is the result of another that has not ended."""
_SAME_BREATH_S = 1.0
"""Calls that feed each other are submitted one right after the other."""
_MOST_NEEDY = 64
"""Of one owner's calls that need arguments so many are followed: the others wait for the same."""
_MOST_PRODUCERS = 64
"""Of the calls that may produce an argument, those that run first."""


class RayIndex(msgspec.Struct, frozen=True, kw_only=True):
    """Ray's tables by the keys the edges need."""

    running: dict[str, Seen]
    """Task id to the process that runs it."""
    owned: dict[str, OwnedTask]
    """By task id, from the workers that submitted it."""
    tasks: Mapping[str, RayTask]
    actors: Mapping[str, RayActor]
    groups: Mapping[str, RayPlacementGroup]
    owners: dict[str, Seen]
    """Task id to the process that submitted it, of those that were collected."""
    needy: dict[tuple[str, str], str]
    """By owner and actor the first call that needs an argument."""


def index_ray(view: View) -> RayIndex:
    """Index a view's Ray tables."""
    running: dict[str, Seen] = {}
    owned: dict[str, OwnedTask] = {}
    owners: dict[str, Seen] = {}
    for one in view.seen.values():  # lanes come behind their processes
        core = one.core
        if core is None:
            continue
        for task_id in core.running_task_ids:
            running[task_id] = one
        if one.lane_of is None:
            owners.update((call.task_id, one) for call in core.owned)
    ray, tasks, is_needy = view.ray, view.tasks, False
    for worker in ray.core_workers if ray else ():
        for submitted in worker.owned:
            owned[submitted.task_id] = submitted
            is_needy = is_needy or submitted.status == NEEDS_ARGS
    for task in tasks.values():
        is_needy = is_needy or task.state == NEEDS_ARGS
        if task.is_running and task.task_id not in running and task.pid is not None:
            runner = _process_of(view, task)
            if runner is not None:
                running[task.task_id] = runner
    needy: dict[tuple[str, str], str] = {}
    for task_id, owner in owners.items() if is_needy else ():
        call = owned.get(task_id)
        if call is not None and call.actor_id is not None and (tasks[task_id].state if task_id in tasks else call.status) == NEEDS_ARGS:
            needy.setdefault((owner.key, call.actor_id), task_id)
    return RayIndex(
        owners=owners,
        needy=needy,
        running=running,
        owned=owned,
        tasks=tasks,
        actors=view.actors,
        groups=view.placement_groups,
    )


def ray_edges(view: View) -> Iterator[Edge]:
    """Edges of every process that waits in ``ray.get`` or ``ray.wait``, of coroutines that await ObjectRefs, of calls that need arguments."""
    index = index_ray(view)
    found = list(_edges_of_processes(view, index))
    yield from found
    yield from _argument_edges(view, index, [e.target for e in found if e.target not in view.seen])


_MAY_AWAIT = WAITS_FOR_RAY | {Kind.EVENT}
"""Where a thread may wait for a result of Ray."""
_CALLBACKS = "its calls"


def _edges_of_callbacks(view: View, index: RayIndex, one: Seen) -> Iterator[Edge]:
    """From an actor that waits for an event which no thread of Python is left to set: Ray calls back from C++ when an answer comes.

    That is an answer to a call that it has made in the call that it runs: any of them.
    """
    for task_id in calls_within(view, one) if one.process.kind == "ray-worker" and lacks_setter(one) else ():
        for edge in _edges_of_task(view, index, one, task_id, "callback", Certainty.LIKELY):
            yield msgspec.structs.replace(edge, among=_CALLBACKS)


def calls_within(view: View, one: Seen) -> list[str]:
    """The calls that have not ended and were made in the calls that a process runs now; its own list and Ray's table of tasks tell of them."""
    running = one.core.running_task_ids if one.core is not None else ()
    owned = [t.task_id for t in one.core.owned if t.parent_task_id in running] if one.core is not None else []
    return list(dict.fromkeys([*owned, *(t.task_id for t in view.tasks.values() if running and t.parent_task_id in running and not _is_over(t))]))


def _is_over(task: RayTask) -> bool:
    return task.state in ("FINISHED", "FAILED")


def _edges_of_processes(view: View, index: RayIndex) -> Iterator[Edge]:
    for one in view.like_parts(lambda shape: shape.has_coroutines or shape.stack is None or shape.stands_in(_MAY_AWAIT)):
        waits = [t for t in one.threads if t.place.kind in WAITS_FOR_RAY]
        awaited = [a.awaited.object_id for a in one.process.async_tasks or () if a.awaited is not None and a.awaited.object_id]
        yield from _edges_of_callbacks(view, index, one)
        if not waits and not awaited and not (not one.threads and one.core and one.core.owned and one.core.running_task_ids):
            continue
        groups = [e for t in waits if t.place.op == GROUP_WAIT for e in _edges_to_groups(index, one, "placement_group.wait")]
        if groups:
            yield from groups
            continue
        # what a thread only watches over is no wait of the process
        watching = {t.tid for t in one.threads if t.place.kind is Kind.WATCH}
        watched = {o[:_TASK_HEX] for r in one.process.object_refs if r.tid in watching for o in r.object_ids}
        ids = [(o, r.call) for r in one.process.object_refs if r.tid is None or r.tid not in watching for o in r.object_ids]
        ids += [(o, "await") for o in awaited]
        found = [e for object_id, call in ids for e in _edges_of_task(view, index, one, object_id[:_TASK_HEX], call, Certainty.PROVEN)]
        yield from found
        complete = bool(ids) and all(r.complete for r in one.process.object_refs)
        if found and complete:
            continue
        told = watched.union(object_id[:_TASK_HEX] for object_id, _ in ids)  # a driver may own a call of each rank: once is enough
        owned = [task for task in (one.core.owned if one.core else ()) if task.task_id not in told]
        sure = Certainty.POSSIBLE if lacks_stack(view, one) else Certainty.LIKELY  # it may wait for something else
        guessed = [e for task in owned for e in _edges_of_task(view, index, one, task.task_id, "ray.get", sure)]
        # while it gets results, nothing says that it waits for whatever else it owns
        moving = [e for e in guessed if _moves(view, e.target)]
        guessed = moving if moving or any(_moves(view, e.target) for e in found) else guessed
        yield from guessed
        if waits and not found and not guessed:
            yield from _edges_to_groups(index, one, "ray.get")
        elif awaited and not found and not guessed and view.ray is None and not view.by_hand:
            yield to_unseen(one, f"the results that coroutines of pid {one.process.pid} await", Why.CALL)


def _moves(view: View, node: str) -> bool:
    one = view.seen.get(node)
    return one is not None and one.motion is Motion.MOVING


def _argument_edges(view: View, index: RayIndex, awaited: list[str]) -> Iterator[Edge]:
    """From tasks that need arguments to those of the same owner that are most likely to produce them: Ray's tables do not say which do.

    `awaited` are nodes that somebody waits for; the tasks among them, and those that they lead to, are followed.
    """
    followed: dict[str, int] = defaultdict(int)
    seen: set[str] = set()
    while awaited:
        node = awaited.pop()
        task_id = name_of(node)
        owner = index.owners.get(task_id)
        if node in seen or owner is None or _state(index, task_id) != NEEDS_ARGS or followed[owner.key] >= _MOST_NEEDY:
            continue
        seen.add(node)
        followed[owner.key] += 1
        for other in _producers(index, owner, task_id):
            for edge in _edges_of_task(view, index, owner, other, "argument", Certainty.LIKELY):
                awaited.append(edge.target)
                yield msgspec.structs.replace(edge, source=node)


def _producers(index: RayIndex, owner: Seen, task_id: str) -> list[str]:
    """Calls of the owner that were made right before this one; where none was, all that need nothing themselves."""
    at_s = _submitted_s(index, task_id)
    before = [t.task_id for t in (owner.core.owned if owner.core else ()) if t.task_id != task_id]
    times = {t: _submitted_s(index, t) for t in before}
    close = [t for t, s in times.items() if at_s is not None and s is not None and 0 <= at_s - s <= _SAME_BREATH_S]
    likely = close or [t for t in before if _state(index, t) != NEEDS_ARGS]
    return [*(t for t in likely if t in index.running), *(t for t in likely if t not in index.running)][:_MOST_PRODUCERS]


def _state(index: RayIndex, task_id: str) -> str | None:
    task, owned = index.tasks.get(task_id), index.owned.get(task_id)
    return task.state if task is not None else owned.status if owned is not None else None


def _submitted_s(index: RayIndex, task_id: str) -> float | None:
    task = index.tasks.get(task_id)
    return task.state_times_s.get(NEEDS_ARGS) if task is not None else None


def _edges_to_groups(index: RayIndex, one: Seen, call: str) -> Iterator[Edge]:
    """A wait for a placement group, by ``wait()`` or ``ready()``: in Ray 2.60 no task stands behind it, only the group's own state tells."""
    for group in index.groups.values():
        if group.state in ("PENDING", "RESCHEDULING") and group.job_id in (one.identity.job_id, None):
            state = f"{group.state}, {group.scheduling}" if group.scheduling else group.state
            evidence = f"waits in {call}; placement group {group.name or group.placement_group_id[:12]} of its job is {state}"
            yield Edge(
                source=one.key,
                target=node_of(NodeKind.PLACEMENT_GROUP, group.placement_group_id),
                why=Why.RESOURCES,
                op=call,
                evidence=evidence,
                certainty=Certainty.LIKELY,
            )


def _edges_of_task(view: View, index: RayIndex, one: Seen, task_id: str, call: str, certainty: Certainty) -> Iterator[Edge]:
    op = call if call.startswith("ray") or call == "await" else f"ray.{call}"
    why = Why.ARGUMENT if call == "argument" else Why.CALL
    owned, task = index.owned.get(task_id), index.tasks.get(task_id)
    name = (owned.name if owned else None) or (task.name if task else None)
    runner = index.running.get(task_id)
    called = index.actors.get((task.actor_id if task else None) or "")
    if called is not None and (tried := tried_in_vain(view, called)) is not None:
        target = node_of(NodeKind.ACTOR, called.actor_id)
        yield Edge(source=one.key, target=target, why=why, op=op, evidence=f"waits for {name}; {words(tried)}", certainty=certainty)
        return
    if task is not None and fails_again(task):
        yield Edge(source=one.key, target=node_of(NodeKind.TASK, task_id), why=why, op=op, evidence=f"waits for {words(task)}", certainty=certainty)
        return
    if runner is not None:
        evidence = f"waits for {name or 'task ' + task_id[:16]}, running there"
        yield Edge(source=one.key, target=runner.key, why=why, op=op, evidence=evidence, certainty=certainty)
        return
    if task is None and task_id not in index.owned:
        return  # finished: what it produced is there
    if task is not None and task.placement_group_id and (name or "").startswith("bundle_reservation_check_func"):
        evidence = "waits for a placement group to be ready"
        yield Edge(
            source=one.key,
            target=node_of(NodeKind.PLACEMENT_GROUP, task.placement_group_id),
            why=Why.RESOURCES,
            op=op,
            evidence=evidence,
            certainty=certainty,
        )
        return
    actor_id = (owned.actor_id if owned else None) or (task.actor_id if task else None)
    actor = index.actors.get(actor_id or "")
    needy = task_id if _state(index, task_id) == NEEDS_ARGS else _needy_before(view, index, one, actor)
    if needy is not None:
        what = f"{name or 'its task'} needs what another call produces" if needy == task_id else f"{name} stands behind a call that needs an argument"
        yield Edge(source=one.key, target=node_of(NodeKind.TASK, needy), why=why, op=op, evidence=what, certainty=certainty)
        return
    if actor is not None and not _is_creation(task):
        standing = _lanes_before(view, view.actor_process(actor.actor_id), task)
        for lane in standing:
            evidence = f"its call {name or ''}".rstrip() + f", queued behind {lane.identity.method}; later calls of other lanes have finished"
            yield Edge(source=one.key, target=lane.key, why=Why.QUEUED_CALL, op=f"{op} (queued)", evidence=evidence, certainty=certainty)
        if not standing:
            yield from _edge_to_actor(view, one, actor, name, op, certainty)
        return
    if actor is not None and actor.state in _ACTOR_PENDING:
        yield Edge(
            source=one.key,
            target=node_of(NodeKind.ACTOR, actor.actor_id),
            why=Why.RESOURCES,
            op=op,
            evidence=f"{actor.class_name} is not created yet",
            certainty=certainty,
        )
        return
    if (state := _state(index, task_id)) in _UNSCHEDULED:
        group = next((g.placement_group_id for g in index.groups.values() if _is_pending_ready(g, name)), None)
        target = node_of(NodeKind.PLACEMENT_GROUP, group) if group is not None else node_of(NodeKind.TASK, task_id)
        yield Edge(source=one.key, target=target, why=Why.RESOURCES, op=op, evidence=f"{name or 'its task'} is {state}", certainty=certainty)


def _needy_before(view: View, index: RayIndex, one: Seen, actor: RayActor | None) -> str | None:
    """An actor takes the calls of one caller in order: while it is idle, the first that needs an argument holds up those behind it."""
    process = view.actor_process(actor.actor_id) if actor is not None else None
    if actor is None or process is None or not process.is_idle or (process.core is not None and process.core.running_task_ids):
        return None
    return index.needy.get((one.key, actor.actor_id))


def _lanes_before(view: View, process: Seen | None, task: RayTask | None) -> Sequence[Seen]:
    """The lanes of an actor, all of which stand, for a call that was queued before the window in which other calls of it finished.

    Those came later or from lanes that are free, so the call is queued behind one that stands.
    """
    since_s = max(task.state_times_s.values(), default=None) if task is not None else None
    if process is None or since_s is None or since_s >= process.node.started_time_s or not view.all_stand(process):
        return ()
    return view.lanes(process.key)


def _edge_to_actor(view: View, one: Seen, actor: RayActor, name: str | None, op: str, certainty: Certainty) -> Iterator[Edge]:
    process = view.actor_process(actor.actor_id)
    if process is not None:
        running = process.identity.method or (process.telling.place.op if process.telling and not process.is_idle else None)
        if process is one and not _all_wait(one):
            return  # another thread of it may come to the call
        evidence = f"its call {name or ''}".rstrip() + (f", queued behind {running}" if running else ", not started")
        yield Edge(source=one.key, target=process.key, why=Why.QUEUED_CALL, op=f"{op} (queued)", evidence=evidence, certainty=certainty)
    elif actor.state in ("DEAD", *_ACTOR_PENDING):
        evidence = f"{actor.class_name} is {actor.state}" + (f": {how_dead(actor)}" if actor.death else "")
        certainty = Certainty.POSSIBLE if _died_meanwhile(view, one, actor) else certainty
        yield Edge(source=one.key, target=node_of(NodeKind.ACTOR, actor.actor_id), why=Why.CALL, op=op, evidence=evidence, certainty=certainty)
    else:
        evidence = f"its call {name or ''}".rstrip() + f"; {actor.class_name} is {actor.state}, but its process was not seen"
        yield Edge(source=one.key, target=node_of(NodeKind.ACTOR, actor.actor_id), why=Why.CALL, op=op, evidence=evidence, certainty=certainty)


def _died_meanwhile(view: View, one: Seen, actor: RayActor) -> bool:
    """Did it end while we looked? Then who waited for it may have been answered before, or be told now: Ray's tables are read behind the stacks."""
    if actor.state != "DEAD":
        return False
    if actor.end_time_s is None or actor.end_time_s > one.node.started_time_s:
        return True
    nodes = (n for n in view.snapshot.nodes if n.node_id == actor.node_id)
    return any(e.pid == actor.pid and not e.was_dead for n in nodes for e in n.ended)


def _all_wait(one: Seen) -> bool:
    """Every call that the process runs waits in Ray itself: none is left to take the next from its queue."""
    waiting = sum(1 for t in one.threads if t.place.kind in WAITS_FOR_RAY)
    return one.core is not None and 0 < len(one.core.running_task_ids) <= waiting


def _is_creation(task: RayTask | None) -> bool:
    return task is not None and task.kind == "ACTOR_CREATION_TASK"


def _is_pending_ready(group: RayPlacementGroup, name: str | None) -> bool:
    return group.state in ("PENDING", "RESCHEDULING") and (name or "").startswith("bundle_reservation_check_func")


def _by_pid(view: View) -> dict[int, dict[str | None, Seen]]:
    """By pid and Ray's id of the node: containers number their processes alike."""
    found: dict[int, dict[str | None, Seen]] = defaultdict(dict)
    for one in view:
        found[one.process.pid].setdefault(one.node.node_id, one)
    return found


def _process_of(view: View, task: RayTask) -> Seen | None:
    alike = view.once(_by_pid).get(task.pid or 0, {})
    if task.node_id is not None and None not in alike:
        return alike.get(task.node_id)
    return next((one for node_id, one in alike.items() if task.node_id is None or node_id in (None, task.node_id)), None)
