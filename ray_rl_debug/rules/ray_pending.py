"""RRD402 resources never come

Story
    A placement group, actor or task asks for resources that no node has or that others hold; everything behind it
    waits.

Evidence
    Ray's tables: state PENDING or RESTARTING, what was asked, what the nodes have together and each for itself, the strategy
    of the placement group, the labels that an actor wants of its node; the processes that hold some of it. A program that a
    raylet has started for a worker, or Ray's agent for the environment of one, and that stands. In stacks alone: a driver in
    ray.get below a function that waits for placement groups.

Remedy
    Ask for less or add nodes; look for leftover actors.

Not this when
    The cluster is still scaling up and resources appear, the tasks only queue behind others that end, or what is asked for
    is free and a worker for it still has seconds to start. Only *possible* if a worker did not report what it has finished.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from ray_rl_debug.analyze.edges import Why
from ray_rl_debug.analyze.handlers import timer_of
from ray_rl_debug.analyze.kinds_of_places import WAITS_FOR_RAY
from ray_rl_debug.analyze.known_edges import all_waiters
from ray_rl_debug.analyze.nodes import NodeKind, kind_of, name_of, node_of
from ray_rl_debug.analyze.placement_calls import placement_call
from ray_rl_debug.analyze.room import (
    Need,
    all_holders_known,
    fits,
    holders,
    is_counted,
    knows_nodes,
    lacks_holder,
    lacks_room,
    need_of,
    supply,
    unplaceable,
)
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.waits_ray import NEEDS_ARGS
from ray_rl_debug.analyze.waits_starts import PREPARES
from ray_rl_debug.model.report import Cause, Certainty, Evidence, Who
from ray_rl_debug.model.snapshot import RayState, RayTask, RayTaskCount
from ray_rl_debug.rules.scene import Found, Scene, listed, make_finding, proc_evidence, stack_evidence

ID = "RRD402"
NAME = "resources never come"
CAUSE = Cause.RAY_PENDING
_NOT_PLACED = "PENDING_NODE_ASSIGNMENT"
_SHOWN = 4
"""Of those who hold what is asked for, so many are told."""
START_S = 20.0
"""A loaded machine needs so long until a new worker has imported its libraries."""


def detect(scene: Scene) -> Iterator[Found]:
    """Roots that Ray could not place: placement groups, tasks, actors. Tasks of one name are one finding: there may be thousands."""
    tasks = {root.nodes[0]: task for root in scene.graph.roots if (task := _task(scene, root.nodes[0])) is not None}
    alike: dict[tuple[str, str], list[str]] = {}
    for root in scene.graph.roots:
        node = root.nodes[0]
        if node in tasks:
            alike.setdefault((tasks[node].name, tasks[node].state), []).append(node)
        elif not root.is_cycle:
            yield from _not_begun(scene, node)
            yield from _found(scene, node, is_awaited=True)
            for waiting in sorted({e.source for e in scene.graph.into(root.nodes) if e.why is Why.ROOM}):
                yield from _found(scene, waiting, is_awaited=True, task=_task(scene, waiting), alike=root.nodes)
    for (_, state), nodes in alike.items():
        if state == NEEDS_ARGS:
            continue  # not for want of resources, and who should produce its argument is not known
        yield from _found(scene, nodes[0], is_awaited=True, task=tasks[nodes[0]], alike=nodes)
    if scene.view.by_hand:
        yield from _of_stacks(scene)
        yield from _of_lists(scene)
    if not scene.view.has_stacks and not any(scene.goes_on(one) for one in scene.view):
        for node in _pending(scene):
            yield from _found(scene, node, is_awaited=False)


def _task(scene: Scene, node: str) -> RayTask | None:
    return scene.view.tasks.get(name_of(node)) if kind_of(node) is NodeKind.TASK else None


def _not_begun(scene: Scene, node: str) -> Iterator[Found]:
    """A program through which Ray starts the worker of an actor, and which stands."""
    one = scene.view.seen.get(node)
    asked = [(scene.who(e.source).label, e) for e in scene.graph.into([node]) if e.why is Why.STARTS]
    if one is None or not asked:
        return
    names = listed([name for name, _ in asked])
    purpose = PREPARES if any(PREPARES in e.evidence for _, e in asked) else "was started for a worker of Ray"
    finding = make_finding(
        ID,
        NAME,
        CAUSE,
        Certainty.LIKELY,
        f"{one.where()} {purpose} and {one.does()}; {names} cannot begin until that worker is ready",
        who=[one.who()],
        evidence=[
            *(Evidence(kind="task", where="Ray's tables", text=f"{name} has no process; {e.evidence}") for name, e in asked[:_SHOWN]),
            stack_evidence(one),
            proc_evidence(one, scene.reason(one)),
        ],
        remedy=[
            "start a worker by hand in the same way, and see where it stands: py_executable, the image and the hooks of the runtime environment",
            "make what it fetches or locks before the job: a lock of a package cache, an environment, a download",
        ],
        phase="init",
    )
    yield Found(finding=finding, explains=frozenset([node, *(e.source for _, e in asked)]))


def _of_stacks(scene: Scene) -> Iterator[Found]:
    """Ray's tables are not in files of stacks; a function that waits for placement groups says by its name what the answer is that does not come."""
    for one in scene.view:
        thread = one.telling
        # the own function that asks Ray, and what it calls; those around it may be called after anything
        own = thread.place.own if thread is not None else None
        frames = thread.frames[: None if own is None else own + 1] if thread is not None else ()
        asked = placement_call(frames)
        if one.kind not in WAITS_FOR_RAY or asked is None or scene.graph.out(one.key):
            continue
        finding = make_finding(
            ID,
            NAME,
            CAUSE,
            Certainty.POSSIBLE,
            f"{one.where()} waits for placement groups ({asked}): Ray may have no room for them",
            who=[Who(label="placement groups that are not placed")],
            evidence=[stack_evidence(one)],
            remedy=[
                "ray status: compare each pending bundle with what single nodes have free; STRICT_PACK needs all of it on one node",
                "look for leftover actors and jobs that hold the cards: ray list actors, ray list placement-groups",
            ],
            phase="init",
        )
        yield Found(finding=msgspec.structs.replace(finding, victims=(one.who(),)), explains=frozenset([one.key]))


def _of_lists(scene: Scene) -> Iterator[Found]:
    """Rows of ``ray list`` below a stack that waits in ``ray.get``: what Ray has not started is what such a wait is for."""
    listed = scene.view.snapshot.listed
    if listed is None:
        return
    actors = [a for a in listed.actors if a.state in ("PENDING_CREATION", "DEPENDENCIES_UNREADY") and not a.pid]
    tasks = [t for t in listed.tasks if t.state == _NOT_PLACED] if not any(t.state == "RUNNING" for t in listed.tasks) else []
    counts = _counted(listed)
    named = [f"actor {a.name or a.class_name} is {a.state}" for a in actors] or [f"task {t.name} is {t.state}" for t in tasks]
    named = named or [f"{c.states[_NOT_PLACED]} of {c.name} are {_NOT_PLACED}" for c in counts]
    named = named or [f"{d.count} or more pending {d.kind.replace('/', ' or ')} need {{{d.need}}}" for d in listed.demands]
    waiting = [one for one in scene.view if one.kind in WAITS_FOR_RAY and not scene.graph.out(one.key)]
    short = _short(listed)
    if not named or not (waiting or (short and not scene.view.seen)):
        return
    more = f", and {len(named) - 1} more" if len(named) > 1 else ""
    table = "ray list" if actors or tasks else "ray summary tasks" if counts else "ray status"
    why = [*short, *(f"{one.where()} {one.does()}" for one in waiting[:1])]
    finding = make_finding(
        ID,
        NAME,
        CAUSE,
        Certainty.POSSIBLE,
        f"Ray's list that was given says: {named[0]}{more}; {'; '.join(why)}",
        who=[Who(label=a.name or a.class_name) for a in actors[:_SHOWN]]
        or [Who(label=t.name) for t in (tasks or counts)[:_SHOWN]]
        or [Who(label=f"what needs {{{d.need}}}") for d in listed.demands[:_SHOWN]],
        evidence=[
            *(Evidence(kind="task", where=table, text=text) for text in named[:_SHOWN]),
            *(Evidence(kind="task", where="ray status", text=text) for text in short),
            *(stack_evidence(one) for one in waiting[:1]),
        ],
        remedy=[
            "ray status: compare what is requested with what single nodes have free",
            "look for leftover actors and jobs that hold the cards: ray list actors, ray list placement-groups",
        ],
        phase="init" if actors else None,
    )
    explains = frozenset(w.key for w in waiting) or frozenset(["ray list"])
    yield Found(finding=msgspec.structs.replace(finding, victims=tuple(w.who() for w in waiting)), explains=explains)


def _counted(listed: RayState) -> list[RayTaskCount]:
    """Functions of which a pasted summary counts calls that no node takes, where it counts none that runs."""
    runs = any(c.states.get("RUNNING") for c in listed.task_counts)
    return [] if runs else [c for c in listed.task_counts if c.states.get(_NOT_PLACED)]


def _short(listed: RayState) -> list[str]:
    """Resources of which less is free than one of those that wait needs."""
    told = {}
    for demand in listed.demands:
        for name, amount in _AMOUNT.findall(demand.need):
            used, whole = listed.usage.get(name, (0.0, math.inf))
            if float(amount) > whole - used:
                told[name] = f"{used:g} of {whole:g} {name} are in use, and each that waits needs {float(amount):g}"
    return list(told.values())


_AMOUNT = re.compile(r"([A-Za-z][\w:.-]*): (\d+(?:\.\d+)?)")


def _pending(scene: Scene) -> Iterator[str]:
    """Without stacks nobody can be seen to wait: what cannot be placed while nothing moves is told all the same."""
    known = {n for root in scene.graph.roots for n in root.nodes}
    ray = scene.view.ray
    groups = [node_of(NodeKind.PLACEMENT_GROUP, g.placement_group_id) for g in ray.placement_groups if g.state == "PENDING"] if ray else []
    actors = [node_of(NodeKind.ACTOR, a.actor_id) for a in ray.actors if a.state == "PENDING_CREATION"] if ray else []
    yield from (node for node in (*groups, *actors) if node not in known)


def _found(scene: Scene, node: str, *, is_awaited: bool, task: RayTask | None = None, alike: Sequence[str] = ()) -> Iterator[Found]:
    """What Ray has not placed; `alike` are other nodes that the finding explains."""
    group, actor = scene.placement_group(node), scene.actor(node)
    if group is not None:
        need = need_of(scene.view, group)
        what = f"placement group {group.name or group.placement_group_id[:12]} is {group.state}"
    elif actor is not None and actor.pid and actor.state == "PENDING_CREATION":
        return  # it has its resources and a process, and runs its constructor
    elif actor is not None and (actor.state in ("PENDING_CREATION", "DEPENDENCIES_UNREADY") or lacks_room(scene.view, actor)):
        need = need_of(scene.view, actor)
        what = f"actor {actor.name or actor.class_name} is {actor.state}"
    elif kind_of(node) is NodeKind.TASK:
        need = need_of(scene.view, task) if task else Need(amounts={})
        same = sum(kind_of(n) is NodeKind.TASK for n in alike)
        more = f", and {same - 1} more of its name" if same > 1 else ""
        what = f"task {task.name} is {task.state}{more}" if task else "a task was not started"
    else:
        return
    short, certainty = _shortage(scene, need)
    keepers = [h.one for h in holders(scene.view, need)] if certainty is Certainty.LIKELY else []
    behind = all_waiters(node, scene.graph.edges) if keepers else set()
    waits_itself = bool(keepers) and all(k.key in behind for k in keepers)
    if waits_itself:
        names = listed([k.identity.label for k in keepers])
        keep = "holds it, and itself waits" if len(keepers) == 1 else "hold it, and themselves wait"
        short = f"{need.place} is large enough, but {names} {keep} for what was not placed"
    if kind_of(node) is NodeKind.ACTOR and need.group is None and any(k.is_at_work for k in keepers) and not waits_itself:
        short, certainty = f"{short}; one of them is at work, and may be ended when it is through", Certainty.POSSIBLE
    if kind_of(node) is NodeKind.TASK and certainty is Certainty.LIKELY:
        others = _plain_tasks(scene)
        if any(o.core and (o.core.executed_tasks or 0) > (o.core.executed_tasks_before or 0) for o in others):
            return  # a queue: tasks end and others begin
        if any(o.is_at_work for o in others):
            short, certainty = "running tasks hold the resources", Certainty.POSSIBLE
        elif not _holders_answered(scene):
            certainty = Certainty.POSSIBLE
    if certainty is Certainty.LIKELY and (waiter := _with_timer(scene, node)) is not None:
        short, certainty = f"{short}; a timer of {waiter.identity.label}, which waits for it, fires soon and may change that", Certainty.POSSIBLE
    age_s = _age_s(scene, node, task)
    if certainty is not Certainty.PROVEN and age_s is not None and age_s < START_S and fits(scene.view, need):
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
            Evidence(kind="task", where="Ray's tables", text=f"{what}; asks for {_asked(need) or 'unknown resources'}"),
            Evidence(kind="task", where="Ray's nodes", text=f"{need.place} has {_text(supply(scene.view, need))}"),
            *_holders(scene, need),
        ],
        remedy=_remedy(need, waits_itself=waits_itself),
        phase="init",
    )
    yield Found(finding=finding, explains=frozenset([node, *alike]))


def _with_timer(scene: Scene, node: str) -> Seen | None:
    """Who waits for it and has a timer of its own, as one that ends the actors of an earlier run after a while."""
    waiting = (scene.view.seen[e.source] for e in scene.graph.into([node]) if e.source in scene.view.seen)
    return next((one for one in waiting if timer_of(one) is not None), None)


def _remedy(need: Need, *, waits_itself: bool) -> list[str]:
    if waits_itself and need.group is not None:
        return [
            "give the placement group a bundle for it, beside what its own members hold: nodes added to the cluster do not help",
            "or start it outside of the group: PlacementGroupSchedulingStrategy(placement_group=None), or placement_group_capture_child_tasks=False",
        ]
    return [
        "ask for less, or add nodes: ray status shows what is requested and what exists",
        "look for leftover actors that hold the resources",
    ]


def _age_s(scene: Scene, node: str, task: RayTask | None) -> float | None:
    """Seconds since a task or actor was asked for, at the end of the window; None where that is not known."""
    tasks = scene.view.ray.tasks if scene.view.ray else ()
    creation = next((t for t in tasks if t.kind == "ACTOR_CREATION_TASK" and node == node_of(NodeKind.ACTOR, t.actor_id)), task)
    asked_s = min(creation.state_times_s.values(), default=None) if creation is not None else None
    end_s = max((n.started_time_s + n.window_s for n in scene.view.snapshot.nodes), default=None)
    return max(0.0, end_s - asked_s) if asked_s is not None and end_s is not None else None


def _holders(scene: Scene, need: Need) -> Iterator[Evidence]:
    """Who has what is asked for, and what each of them does."""
    told = [Evidence(kind="task", where=h.one.where(), text=f"holds {_text(h.held)}, and {h.one.does()}") for h in holders(scene.view, need)]
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


def _shortage(scene: Scene, need: Need) -> tuple[str, Certainty]:
    have = supply(scene.view, need)
    if need.group is None and not knows_nodes(scene.view):
        return f"what {need.place} has was not read", Certainty.POSSIBLE
    short = [f"{n:g} {k} asked, {have.get(k, 0):g} in {need.place}" for k, n in need.amounts.items() if n > have.get(k, 0.0) and is_counted(k)]
    if short:
        return "; ".join(short), Certainty.PROVEN
    why = unplaceable(scene.view, need)
    if why is not None:
        return why, Certainty.PROVEN
    if not need.amounts:
        return "what it asks for is not known", Certainty.POSSIBLE
    if not holders(scene.view, need):
        sure = Certainty.LIKELY if all_holders_known(scene.view, need) else Certainty.POSSIBLE
        return f"{need.place} is large enough, but who holds the resources was not seen", sure
    sure = Certainty.POSSIBLE if lacks_holder(scene.view, need) else Certainty.LIKELY
    return f"{need.place} is large enough, but others hold the resources", sure


def _asked(need: Need) -> str:
    of = f" of {need.place}" if need.group is not None and need.amounts else ""
    return f"{_text(need.amounts)}{of}"


def _text(resources: Mapping[str, float]) -> str:
    return ", ".join(f"{v:g} {k}" for k, v in sorted(resources.items()))
