"""RRD401 ring of Ray calls

Story
    Actors or tasks wait for each other's results in a ring; each is busy waiting, so none can answer. The smallest ring is
    an actor that waits for a call to itself.

Evidence
    The ObjectRefs each one waits for, and the queue each call stands in.

Remedy
    Break the ring: asynchronous calls, more concurrency, results passed forward.

Not this when
    One of them also waits for something outside the ring, or answers in another thread.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.detectors.scene import Found, Scene, make_finding
from ray_rl_debug.report import Cause, Certainty, Evidence

ID = "RRD401"
NAME = "ring of Ray calls"
CAUSE = Cause.RAY_GET_CYCLE


def detect(scene: Scene) -> Iterator[Found]:
    """Cycles of Ray waits alone."""
    for root, members, edges in scene.cycles():
        if not members or not all(e.why.startswith(("ray.", "await")) for e in edges):
            continue
        ring = " → ".join([*(m.identity.label for m in members), members[0].identity.label])
        finding = make_finding(
            ID,
            NAME,
            CAUSE,
            Certainty.PROVEN if all(e.certainty is Certainty.PROVEN for e in edges) else Certainty.LIKELY,
            f"calls wait for each other in a ring: {ring}" if len(members) > 1 else f"{members[0].where()} waits for a call to itself: {ring}",
            who=[m.who() for m in members],
            evidence=[Evidence(kind="task", where=scene.who(e.source).label, text=e.evidence) for e in edges[:6]],
            remedy=[
                "make one of the calls asynchronous, or give the actor max_concurrency > 1 so that it can answer while it waits",
                "pass results forward instead of calling back",
            ],
            phase=members[0].phase,
        )
        yield Found(finding=finding, explains=frozenset(root.nodes))
