"""RRD404 producer died

Story
    Somebody polls a queue, buffer or store for what a dead actor should have produced; nobody holds a pending ray.get
    that would fail.

Evidence
    Ray's actor table says DEAD, or the child process that should deliver is a zombie; or Ray starts the actor anew for each
    try of one call, and each has ended with the process; or a task fails in each of many tries. The poller's stack.

Remedy
    Find why it died; check the producer's life while polling.

Not this when
    Other producers still deliver, the actor ended on purpose, or it was started anew a moment ago.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.model.report import Cause
from ray_rl_debug.rules.dead_actors import find_dead
from ray_rl_debug.rules.scene import Found, Scene

ID = "RRD404"
NAME = "producer died"
CAUSE = Cause.PRODUCER_DIED

_REMEDY = [
    "look for its first error: the worker's log, dmesg (OOM killer), the node's memory",
    "let the waiting side check that its producer lives (ray.get on a health call, or a time limit)",
]


def detect(scene: Scene) -> Iterator[Found]:
    """Roots that are dead actors somebody polls or awaits."""
    yield from find_dead(scene, ID, NAME, CAUSE, _REMEDY, engines=False)
