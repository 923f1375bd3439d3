"""Dead actors that somebody still polls or awaits: what the rules about dead producers and dead engines share."""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.analyze.deaths import how_dead
from ray_rl_debug.analyze.places import WAITS_FOR_RANKS
from ray_rl_debug.detectors.scene import Found, Scene, make_finding, stack_evidence
from ray_rl_debug.report import Cause, Certainty, Evidence

_ENGINE_WORDS = ("vllm", "sglang", "engine", "httpserver")


def find_dead(scene: Scene, rule_id: str, name: str, cause: Cause, remedy: list[str], *, engines: bool) -> Iterator[Found]:
    """A finding of the rule for each root of the graph that is a dead actor somebody waits for, inference engines or all others."""
    for root in scene.graph.roots:
        node = root.nodes[0]
        actor = scene.actor(node)
        if root.is_cycle or actor is None or actor.state not in ("DEAD", "RESTARTING"):
            continue
        if engines != any(w in actor.class_name.lower() or w in (actor.name or "").lower() for w in _ENGINE_WORDS):
            continue
        into = scene.graph.into([node])
        waiters = [scene.view.seen[e.source] for e in into if e.source in scene.view.seen]
        if not waiters or any(w.kind in WAITS_FOR_RANKS for w in waiters):
            continue
        how = how_dead(actor)
        finding = make_finding(
            rule_id,
            name,
            cause,
            Certainty.LIKELY,
            f"{scene.who(node).label} (pid {actor.pid}) is dead ({how}); {waiters[0].where()} still waits for what it should deliver",
            who=[scene.who(node)],
            evidence=[
                Evidence(kind="actor", where="Ray's actor table", text=f"{actor.class_name} {actor.state}: {actor.death or how}"),
                *(Evidence(kind="task", where=w.where(), text=e.evidence) for w, e in zip(waiters, into, strict=False)),
                stack_evidence(waiters[0]),
            ],
            remedy=remedy,
            phase=waiters[0].phase,
        )
        yield Found(finding=finding, explains=frozenset([node]))
