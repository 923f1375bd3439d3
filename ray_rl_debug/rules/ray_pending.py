"""RRD402 resources never come

Story
    A placement group, actor or task asks for resources that no node has or that others hold; everything behind it
    waits.

Evidence
    Ray's tables: state PENDING, what was asked, what the nodes have; the processes that hold some of it.

Remedy
    Ask for less or add nodes; look for leftover actors.

Not this when
    The cluster is still scaling up and resources appear, the tasks only queue behind others that end, or what is asked for
    is free and a worker for it still has seconds to start. Only *possible* if a worker did not report what it has finished.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ray_rl_debug.analyze.nodes import NodeKind, kind_of, node_of
from ray_rl_debug.analyze.places import WAITS_FOR_RAY
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.waits_ray import NEEDS_ARGS
from ray_rl_debug.model.report import Cause, Certainty, Evidence
from ray_rl_debug.model.snapshot import RayTask
from ray_rl_debug.rules.scene import Found, Scene, make_finding

ID = "RRD402"
NAME = "resources never come"
CAUSE = Cause.RAY_PENDING
_DERIVED = re.compile(r":|_group_|^(object_store_)?memory$")
_SHOWN = 4
"""Of those who hold what is asked for, so many are told."""
START_S = 20.0
"""A loaded machine needs so long until a new worker has imported its libraries."""


def detect(scene: Scene) -> Iterator[Found]:
    """Roots that Ray could not place: placement groups, tasks, actors. Tasks of one name are one finding: there may be thousands."""
    tasks = {node_of(NodeKind.TASK, t.task_id): t for t in scene.view.ray.tasks} if scene.view.ray else {}
    alike: dict[tuple[str, str], list[str]] = {}
    for root in scene.graph.roots:
        node = root.nodes[0]
        if node in tasks:
            alike.setdefault((tasks[node].name, tasks[node].state), []).append(node)
        elif not root.is_cycle:
            yield from _found(scene, node, is_awaited=True)
    for (_, state), nodes in alike.items():
        if state == NEEDS_ARGS:
            continue  # not for want of resources, and who should produce its argument is not known
        yield from _found(scene, nodes[0], is_awaited=True, task=tasks[nodes[0]], alike=nodes)
    if not scene.view.has_stacks and not any(scene.goes_on(one) for one in scene.view):
        for node in _pending(scene):
            yield from _found(scene, node, is_awaited=False)


def _pending(scene: Scene) -> Iterator[str]:
    """Without stacks nobody can be seen to wait: what cannot be placed while nothing moves is told all the same."""
    known = {n for root in scene.graph.roots for n in root.nodes}
    ray = scene.view.ray
    groups = [node_of(NodeKind.PLACEMENT_GROUP, g.placement_group_id) for g in ray.placement_groups if g.state == "PENDING"] if ray else []
    actors = [node_of(NodeKind.ACTOR, a.actor_id) for a in ray.actors if a.state == "PENDING_CREATION"] if ray else []
    yield from (node for node in (*groups, *actors) if node not in known)


def _found(scene: Scene, node: str, *, is_awaited: bool, task: RayTask | None = None, alike: Sequence[str] = ()) -> Iterator[Found]:
    group = scene.placement_group(node)
    actor = scene.actor(node)
    if group is not None:
        wanted = _total(group.bundles)
        what = f"placement group {group.name or group.placement_group_id[:12]} is {group.state}"
    elif actor is not None and actor.pid and actor.state == "PENDING_CREATION":
        return  # it has its resources and a process, and runs its constructor
    elif actor is not None and actor.state in ("PENDING_CREATION", "DEPENDENCIES_UNREADY"):
        wanted = actor.resources
        what = f"actor {actor.name or actor.class_name} is {actor.state}"
    elif kind_of(node) is NodeKind.TASK:
        wanted = task.resources if task else {}
        more = f", and {len(alike) - 1} more of its name" if len(alike) > 1 else ""
        what = f"task {task.name} is {task.state}{more}" if task else "a task was not started"
    else:
        return
    short, certainty = _shortage(scene, wanted)
    if kind_of(node) is NodeKind.TASK and certainty is Certainty.LIKELY:
        holders = _plain_tasks(scene)
        if any(h.core and (h.core.executed_tasks or 0) > (h.core.executed_tasks_before or 0) for h in holders):
            return  # a queue: tasks end and others begin
        if any(h.is_at_work for h in holders):
            short, certainty = "running tasks hold the resources", Certainty.POSSIBLE
        elif not _holders_answered(scene):
            certainty = Certainty.POSSIBLE
    age_s = _age_s(scene, node, task)
    if certainty is not Certainty.PROVEN and age_s is not None and age_s < START_S and _fits(scene, wanted):
        return  # what it asks for is free: a worker for it is starting
    if not is_awaited:
        certainty = Certainty.LIKELY if certainty is Certainty.PROVEN else Certainty.POSSIBLE
    finding = make_finding(
        ID,
        NAME,
        CAUSE,
        certainty,
        f"{what}: {short}",
        who=[scene.who(node)],
        evidence=[
            Evidence(kind="task", where="Ray's tables", text=f"{what}; asks for {_text(wanted) or 'unknown resources'}"),
            Evidence(kind="task", where="Ray's nodes", text=f"the cluster has {_text(_cluster(scene))}"),
            *_holders(scene, wanted),
        ],
        remedy=[
            "ask for less, or add nodes: ray status shows what is requested and what exists",
            "look for leftover actors that hold the resources",
        ],
        phase="init",
    )
    yield Found(finding=finding, explains=frozenset([node, *alike]))


def _age_s(scene: Scene, node: str, task: RayTask | None) -> float | None:
    """Seconds since a task or actor was asked for, at the end of the window; None where that is not known."""
    tasks = scene.view.ray.tasks if scene.view.ray else ()
    creation = next((t for t in tasks if t.kind == "ACTOR_CREATION_TASK" and node == node_of(NodeKind.ACTOR, t.actor_id)), task)
    asked_s = min(creation.state_times_s.values(), default=None) if creation is not None else None
    end_s = max((n.started_time_s + n.window_s for n in scene.view.snapshot.nodes), default=None)
    return max(0.0, end_s - asked_s) if asked_s is not None and end_s is not None else None


def _fits(scene: Scene, wanted: dict[str, float]) -> bool:
    """Do the actors and tasks that run leave as much as is asked for?"""
    free = _cluster(scene)
    ray = scene.view.ray
    holders = [a.resources for a in ray.actors if a.pid and a.state != "DEAD"] if ray else []
    holders += [t.resources for t in ray.tasks if t.state.startswith("RUNNING") and t.kind == "NORMAL_TASK"] if ray else []
    for held in holders:
        for name, amount in held.items():
            free[name] = free.get(name, 0.0) - amount
    return all(amount <= free.get(name, amount) for name, amount in wanted.items())


def _holders(scene: Scene, wanted: dict[str, float]) -> Iterator[Evidence]:
    """Who has what is asked for, and what each of them does; a task that waits for Ray has lent its CPUs to others."""
    tasks = {t.task_id: t for t in scene.view.ray.tasks} if scene.view.ray else {}
    told: list[Evidence] = []
    for one in scene.view:
        running = [tasks[t] for t in one.core.running_task_ids if t in tasks] if one.core is not None and one.actor is None else []
        held = one.actor.resources if one.actor is not None else _total(tuple(t.resources for t in running))
        lent = one.actor is None and one.kind in WAITS_FOR_RAY
        named = {k: v for k, v in held.items() if k in wanted and v and not (lent and k == "CPU")}
        if named:
            told.append(Evidence(kind="task", where=one.where(), text=f"holds {_text(named)}, and {one.does()}"))
    yield from told[:_SHOWN]
    if len(told) > _SHOWN:
        yield Evidence(kind="task", where="Ray's tables", text=f"{len(told) - _SHOWN} more hold some of it")


def _holders_answered(scene: Scene) -> bool:
    """Did every worker tell how many tasks it has finished? From one that did not, nobody knows whether it works through a queue."""
    workers = [s for s in scene.view if s.process.kind == "ray-worker"]
    return all(w.core is not None and w.core.executed_tasks_before is not None for w in workers)


def _plain_tasks(scene: Scene) -> list[Seen]:
    """Processes that execute tasks, not actors: they give their resources back."""
    return [s for s in scene.view if s.core is not None and s.core.kind == "WORKER" and s.core.actor_id is None]


def _total(bundles: tuple[dict[str, float], ...]) -> dict[str, float]:
    total: dict[str, float] = {}
    for bundle in bundles:
        for name, amount in bundle.items():
            total[name] = total.get(name, 0.0) + amount
    return total


def _cluster(scene: Scene) -> dict[str, float]:
    alive = [n.resources for n in scene.view.ray.nodes if n.alive] if scene.view.ray else []
    return {k: v for k, v in _total(tuple(alive)).items() if _is_counted(k)}


def _is_counted(resource: str) -> bool:
    """Not memory, not what Ray derives itself: marks of nodes and cards, and the bundles of placement groups."""
    return _DERIVED.search(resource) is None


def _shortage(scene: Scene, wanted: dict[str, float]) -> tuple[str, Certainty]:
    have = _cluster(scene)
    short = [f"{n:g} {k} asked, {have.get(k, 0):g} in the cluster" for k, n in wanted.items() if n > have.get(k, 0.0) and _is_counted(k)]
    if short:
        return "; ".join(short), Certainty.PROVEN
    if not wanted:
        return "what it asks for is not known", Certainty.POSSIBLE
    return "the cluster is large enough, but others hold the resources", Certainty.LIKELY


def _text(resources: dict[str, float]) -> str:
    return ", ".join(f"{v:g} {k}" for k, v in sorted(resources.items()))
