"""RRD404 producer died

Story
    Somebody polls a queue, buffer or store for what a dead actor should have produced; nobody holds a pending ray.get
    that would fail.

Evidence
    Ray's actor table says DEAD; the poller's stack.

Remedy
    Find why it died; check the producer's life while polling.

Not this when
    Other producers still deliver, or the actor ended on purpose.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.analyze.deaths import how_dead
from ray_rl_debug.analyze.places import WAITS_FOR_RANKS
from ray_rl_debug.detectors.scene import Found, Scene, make_finding, stack_evidence
from ray_rl_debug.report import Cause, Certainty, Evidence

ID = "RRD404"
NAME = "producer died"
CAUSE = Cause.PRODUCER_DIED


def detect(scene: Scene) -> Iterator[Found]:
    """Roots that are dead actors somebody polls or awaits."""
    for root in scene.graph.roots:
        node = root.nodes[0]
        actor = scene.actor(node)
        if root.is_cycle or actor is None or actor.state not in ("DEAD", "RESTARTING"):
            continue
        into = scene.graph.into([node])
        waiters = [scene.view.seen[e.source] for e in into if e.source in scene.view.seen]
        if not waiters or any(w.kind in WAITS_FOR_RANKS for w in waiters):
            continue
        how = how_dead(actor)
        is_engine = any(w in actor.class_name.lower() or w in (actor.name or "").lower() for w in _ENGINE_WORDS)
        finding = make_finding(
            ENGINE_ID if is_engine else ID,
            ENGINE_NAME if is_engine else NAME,
            Cause.ENGINE_DIED if is_engine else CAUSE,
            Certainty.LIKELY,
            f"{scene.who(node).label} (pid {actor.pid}) is dead ({how}); {waiters[0].where()} still waits for what it should deliver",
            who=[scene.who(node)],
            evidence=[
                Evidence(kind="actor", where="Ray's actor table", text=f"{actor.class_name} {actor.state}: {actor.death or how}"),
                *(Evidence(kind="task", where=w.where(), text=e.evidence) for w, e in zip(waiters, into, strict=False)),
                stack_evidence(waiters[0]),
            ],
            remedy=[
                "look for its first error: the worker's log, dmesg (OOM killer), the node's memory",
                "let the waiting side check that its producer lives (ray.get on a health call, or a time limit)",
            ],
            phase=waiters[0].phase,
        )
        yield Found(finding=finding, explains=frozenset([node]))


ENGINE_ID = "RRD205"
ENGINE_NAME = "engine died"
_ENGINE_WORDS = ("vllm", "sglang", "engine", "httpserver")
