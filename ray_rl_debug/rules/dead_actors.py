"""Dead actors and child processes that somebody still polls or awaits: what the rules about dead producers and dead engines share."""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.analyze.deaths import how_dead
from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.group_threads import is_in_group
from ray_rl_debug.analyze.kinds_of_places import WAITS_FOR_RANKS
from ray_rl_debug.analyze.nodes import NodeKind, kind_of, name_of
from ray_rl_debug.analyze.restarts import fails_again, tried_in_vain, words
from ray_rl_debug.analyze.room import lacks_room
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.waits_async import ROOM
from ray_rl_debug.model.report import Cause, Certainty, Evidence
from ray_rl_debug.rules.scene import Found, Scene, make_finding, stack_evidence

_LOCKS = frozenset({Why.SEMAPHORE, Why.GIVERS, Why.FILE_LOCK, Why.TRIED_LOCK, Why.BUILD_LOCK})
_ENGINE_WORDS = ("llm", "sglang", "engine", "httpserver")


def find_dead(scene: Scene, rule_id: str, name: str, cause: Cause, remedy: list[str], *, engines: bool) -> Iterator[Found]:
    """A finding of the rule for each root of the graph that is a dead actor somebody waits for, inference engines or all others."""
    for root in scene.graph.roots:
        node = root.nodes[0]
        dead = None if root.is_cycle else _dead(scene, node)
        if dead is None or engines != any(word in dead[0].lower() for word in _ENGINE_WORDS):
            continue
        into = scene.graph.into([node])
        waiters = [scene.view.seen[e.source] for e in into if e.source in scene.view.seen]
        if not waiters or any(waits_as_rank(scene, w, node) for w in waiters):
            continue
        who = scene.who(node)
        label = who.label.removesuffix(f" (pid {who.pid})") + (f" (pid {who.pid})" if who.pid is not None else "")
        finding = make_finding(
            rule_id,
            name,
            cause,
            Certainty.LIKELY,
            f"{label} {dead[1]}; {waiters[0].where()} still waits for {_owed(into[0])}",
            who=[who],
            evidence=[
                dead[2],
                *(Evidence(kind="task", where=w.where(), text=e.evidence) for w, e in zip(waiters, into, strict=False)),
                stack_evidence(waiters[0]),
            ],
            remedy=remedy,
            phase=waiters[0].phase,
        )
        yield Found(finding=finding, explains=frozenset([node]))


def zombie_words(one: Seen) -> str:
    """That a process has ended and its parent has not noticed, in words."""
    code = one.process.exit_code
    how = "" if code is None else f" by signal {-code}" if code < 0 else f" with exit code {code}"
    return f"a zombie: it has ended{how}, and its parent has not collected its exit status"


def _owed(edge: Edge) -> str:
    """What a dead process still owes to the one that waits for it."""
    if edge.op == ROOM:
        return "room in its queue, from which that one should take"
    return "a lock that it can no longer give back" if edge.why in _LOCKS else "what it should deliver"


def waits_as_rank(scene: Scene, waiter: Seen, node: str) -> bool:
    """Does it wait for the dead one as ranks do: in a collective, or as a fellow of its process group that has left the collective for a pause?"""
    actor = scene.actor(node)
    is_fellow = actor is not None and waiter.actor is not None and waiter.actor.class_name == actor.class_name
    return waiter.kind in WAITS_FOR_RANKS or (is_fellow and is_in_group(waiter.process))


def _dead(scene: Scene, node: str) -> tuple[str, str, Evidence] | None:
    """Its names, that it died and how, and what tells it; None when it lives."""
    actor, process = scene.actor(node), scene.view.seen.get(node)
    task = scene.view.tasks.get(name_of(node)) if kind_of(node) is NodeKind.TASK else None
    if task is not None and fails_again(task):
        told = Evidence(kind="task", where="Ray's table of tasks", text=f"{task.name} {task.state}, attempt {task.attempt}: {words(task)}")
        return task.name, f"fails again and again ({words(task)})", told
    if actor is not None and (tried := tried_in_vain(scene.view, actor)) is not None:
        told = Evidence(kind="actor", where="Ray's actor table", text=f"{actor.class_name} {actor.state}, {actor.restarts} restarts: {words(tried)}")
        return f"{actor.class_name} {actor.name or ''}", f"dies again and again ({words(tried)})", told
    if actor is not None and actor.state in ("DEAD", "RESTARTING") and not lacks_room(scene.view, actor):
        how = how_dead(actor)
        told = Evidence(kind="actor", where="Ray's actor table", text=f"{actor.class_name} {actor.state}: {actor.death or how}")
        return f"{actor.class_name} {actor.name or ''}", f"is dead ({how})", told
    if process is not None and process.has_ended:
        told = Evidence(kind="proc", where=process.where(), text=zombie_words(process))
        return f"{process.identity.label} {process.process.title} {process.process.comm or ''}", "is dead (a zombie)", told
    return None
