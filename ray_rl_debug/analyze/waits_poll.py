"""Edges of pollers: a driver that looks again and again for what a producer should deliver, although nobody holds a pending ``ray.get``.

verl's V1 trainer polls its ReplayBuffer, AReaL's executor its result queue, Agent-Lightning's daemon the store. The producers are the
processes of the same job that run a call (or await one) and do not wait for the poller themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ray_rl_debug.analyze.coroutines import serves
from ray_rl_debug.analyze.deaths import how_dead
from ray_rl_debug.analyze.edges import Edge, Why
from ray_rl_debug.analyze.frameworks import POLLERS, spot_of
from ray_rl_debug.analyze.kinds_of_places import WAITS_FOR_RANKS, WAITS_FOR_RAY, Kind
from ray_rl_debug.analyze.known_edges import edges_of
from ray_rl_debug.analyze.looks import looks_at
from ray_rl_debug.analyze.nodes import NodeKind, node_of
from ray_rl_debug.analyze.pauses import ANSWER_S, looks_again
from ray_rl_debug.analyze.places import own_path
from ray_rl_debug.analyze.progress import Motion
from ray_rl_debug.analyze.seen import Seen
from ray_rl_debug.analyze.view import View
from ray_rl_debug.analyze.waits_calls import callers_so_far
from ray_rl_debug.model.report import Certainty
from ray_rl_debug.model.snapshot import Frame, RayActor

ASKS = "remote"
"""Stands among the calls of a condition that asks an actor of Ray: one that looks for an answer, and does not work by short calls."""
_POLL_WORDS = ("wait", "poll", "until", "ready", "collect", "drain", "next_batch", "fetch")


_MAY_REST = WAITS_FOR_RAY | {Kind.SLEEP}


def is_poller(one: Seen) -> bool | None:
    """True for a known poller, None for something that looks like one, False otherwise."""
    place = one.place
    is_known = one.telling is not None and one.telling.stack.once(_has_poller)
    if place is None or one.is_stopped or not (is_known or place.kind in _MAY_REST):
        return False
    if one.telling is not None and looks_at(one.telling) == ():
        return False  # no other process changes its variables
    if is_known:
        return True
    # on a slow machine all samples may meet the short calls between the pauses
    rests = place.kind is Kind.SLEEP or (place.kind in WAITS_FOR_RAY and one.motion is not Motion.FROZEN)
    if rests and place.path and len(_functions(one)) == 1 and any(w in place.path[0][0].lower() for w in _POLL_WORDS):
        return None
    return False


_TOLD = (Why.TRIED_LOCK, Why.BUILD_LOCK)
"""Waits of pollers of which it is known what they look for, and who has it."""


def _has_poller(frames: tuple[Frame, ...]) -> bool:
    return any(spot_of(POLLERS, function, file) is not None for function, file, _ in own_path(frames))


def _functions(one: Seen) -> set[tuple[str, str]]:
    """The innermost own function of each sample."""
    return {p.path[0][:2] for p in one.places if p.path}


def poll_edges(view: View, known: Sequence[Edge]) -> Iterator[Edge]:
    """Edges from pollers to the producers that owe them something; `known` are the edges found so far."""
    short_calls = only_short_calls_end(view)
    may_poll = view.like(lambda shape: shape.kind in _MAY_REST or (shape.stack is not None and shape.stack.once(_has_poller)))
    polling = [(one, True if short_calls and _sleeps_in_one_loop(one) else is_poller(one)) for one in may_poll]
    told = {e.source for e in edges_of(known, *_TOLD)}
    pollers = [(one, polls) for one, polls in polling if polls is not False and one.key not in told]
    left_alone = [*_left_alone(view, known)]
    pollers += [(one, None) for one in left_alone]
    sources = {e.source for e in known} if pollers else ()
    targets: dict[str, set[str]] = {}
    answering = {one.key for one, _ in pollers if one.telling is not None and one.telling.answers}
    for edge in known if pollers else ():
        # the server that a producer waits for may well live in the poller's process, but for a poller that is the server's handler itself
        if edge.why not in (Why.SOCKET, Why.AWAITED_SOCKET) or edge.target in answering:
            targets.setdefault(edge.source, set()).add(edge.target)
    for one, polls in pollers:
        sure = Certainty.LIKELY if polls else Certainty.POSSIBLE
        at = one.place.path[0][0] if one.place and one.place.path else "poll"
        others = [p for p in view if p is not one and one.key not in targets.get(p.key, set())]
        producers = [p for p in others if _may_produce(p, one) and not _only_launches(view, p)]
        dead = dead_fellows(view, one) if not producers else []
        died_s = max((a.end_time_s or 0.0 for a in dead), default=0.0)
        over_s = one.node.started_time_s + one.node.window_s - died_s
        sure_dead = Certainty.POSSIBLE if one in left_alone and over_s < ANSWER_S else Certainty.LIKELY  # others may yet be made in their place
        looks = all(is_poller(p) is not False or looks_again(p) for p in producers)
        ended = [c for c in others if looks and _has_ended(c) and _is_fellow(c, one)]
        if ended:  # those that only look for something themselves make nothing, and who was killed had something in its hands
            only_look = bool(producers) and (all(is_poller(p) is not False for p in producers) or all(c.process.exit_code for c in ended))
            sure = Certainty.LIKELY if only_look else Certainty.POSSIBLE
            producers = ended
        if polls and not producers and not dead:  # met between two calls: those that have just finished some deliver
            producers = [p for p in others if _is_fellow(p, one) and p.motion is Motion.MOVING]
            brought = _brought_so_far(view, one, producers)
            asks = one.telling is not None and ASKS in (looks_at(one.telling) or ())
            producers, sure = (brought, Certainty.LIKELY if asks else Certainty.POSSIBLE) if brought else (producers, sure)
        # waiters in the middle of a chain are reached through its head; name heads first
        heads = ended or [p for p in producers if p.key in sources or p.motion is not Motion.UNKNOWN]
        for producer in heads or producers:
            evidence = f"polls in {at}; {producer.identity.label} {_doing(producer)}"
            yield Edge(source=one.key, target=producer.key, why=Why.POLL, evidence=evidence, certainty=sure)
        for actor in dead:
            evidence = f"polls in {at}; {actor.name or actor.class_name} is dead: {how_dead(actor)}"
            target = node_of(NodeKind.ACTOR, actor.actor_id)
            yield Edge(source=one.key, target=target, why=Why.POLL, evidence=evidence, certainty=sure_dead)  # nobody is left who delivers


def _only_launches(view: View, one: Seen) -> bool:
    """Does it wait for the end of its children, whose stacks were all seen? It makes nothing itself, and each of them is asked for itself."""
    children = view.children(one)
    return one.kind is Kind.CHILD and bool(children) and all(c.threads for c in children)


def _brought_so_far(view: View, poller: Seen, asked: Sequence[Seen]) -> list[Seen]:
    """Who made the other calls of the actors that a poller asks, by Ray's history: what they bring may be what it looks for."""
    found = set[str]()
    methods = view.once(_called_methods)
    for actor in {(a.identity.class_name, a.identity.job_id): a for a in asked}.values():
        for method in methods.get(actor.identity.class_name, ()):
            callers = callers_so_far(view, actor, [method])
            found |= callers if callers is not None and poller.key not in callers else frozenset()
    return [view.seen[key] for key in sorted(found) if key in view.seen and not view.seen[key].is_at_work]


def _called_methods(view: View) -> dict[str | None, list[str]]:
    """By the class of an actor the methods of which calls have ended, by Ray's history."""
    found: dict[str | None, list[str]] = {}
    for calls in view.ray.history if view.ray is not None else ():
        class_name, _, method = calls.name.rpartition(".")
        if calls.count:
            found.setdefault(class_name, []).append(method)
    return found


def _left_alone(view: View, known: Sequence[Edge]) -> Iterator[Seen]:
    """Drivers that look again and again while nobody works and Ray has nothing to do, after actors of theirs died and nothing has ended since."""
    ray = view.ray
    if ray is None or any(s.is_at_work or (s.core is not None and (s.core.running_task_ids or s.core.owned)) for s in view):
        return
    last_s = max((h.last_end_time_s or 0.0 for h in ray.history), default=0.0)
    for one in view:
        dead = dead_fellows(view, one) if one.process.kind == "driver" and looks_again(one) and is_poller(one) is False else []
        if dead and all((a.end_time_s or 0.0) >= last_s for a in dead[-1:]) and not any(e.source == one.key for e in known):
            yield one


def only_short_calls_end(view: View) -> bool:
    """Is all that moves actors between two short calls, while whoever makes these calls sleeps? Then somebody looks again and again."""
    moving = view.like(lambda shape: shape.motion in (Motion.MOVING, Motion.BUSY))
    return bool(moving) and all(s.is_idle and s.motion is Motion.MOVING and s.process.kind == "ray-worker" for s in moving)


def _sleeps_in_one_loop(one: Seen) -> bool:
    is_caller = one.process.kind in ("driver", "named")
    return is_caller and one.kind is Kind.SLEEP and one.motion is Motion.FROZEN and not one.is_stopped and len(_functions(one)) == 1


def _has_ended(one: Seen) -> bool:
    """A child that has ended and left a zombie: its parent does not look after it."""
    return one.process.kind == "child" and one.has_ended


def dead_fellows(view: View, poller: Seen) -> list[RayActor]:
    """Actors of its job that did not end by design."""
    actors = view.ray.actors if view.ray is not None else ()
    return [a for a in actors if a.state == "DEAD" and a.job_id == poller.identity.job_id and a.death_kind not in ("out-of-scope", "exited")]


def _may_produce(other: Seen, poller: Seen) -> bool:
    own, its = poller.identity, other.identity
    if own.class_name and (own.class_name, own.method) == (its.class_name, its.method):
        return False  # a sibling in the same call is a fellow, not a producer
    if not _is_fellow(other, poller):
        return False
    if other.kind in WAITS_FOR_RANKS or other.is_stopped:
        return True
    method = other.identity.method
    running = bool(other.core and other.core.running_task_ids) or (method is not None and not method.startswith("__init__"))
    pending = any(t.awaited is not None and t.awaited.kind != "sleep" and not serves(t) for t in other.process.async_tasks or ())
    works = other.process.kind in ("child", "named") and not other.is_idle and other.place is not None and bool(other.place.path)
    if works and other.telling is not None and other.telling.listens and len(other.threads) == 1:
        return False  # a server that nobody asks makes nothing
    return running or pending or works


def _is_fellow(other: Seen, poller: Seen) -> bool:
    return other.identity.job_id == poller.identity.job_id or other.node is poller.node


def _doing(producer: Seen) -> str:
    if _has_ended(producer):
        return "has ended and left a zombie"
    return f"runs {producer.identity.method}" if producer.identity.method else producer.at()
