"""RRD205 engine died

Story
    An inference engine or its server was killed or crashed; a router, an agent loop or the trainer was never told and
    still awaits its answers.

Evidence
    Ray's actor table says DEAD or RESTARTING of an actor that is an engine by its class or name, or a child of the
    engine is a zombie; the waiter's stack.

Remedy
    Find why it died; give requests a time limit, and let the router take dead engines out.

Not this when
    The engine was shut down on purpose, or other engines answer what waits.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.detectors.dead_actors import find_dead
from ray_rl_debug.detectors.scene import Found, Scene
from ray_rl_debug.report import Cause

ID = "RRD205"
NAME = "engine died"
CAUSE = Cause.ENGINE_DIED

_REMEDY = [
    "look for its first error: the engine's log, CUDA or KV-cache out of memory, dmesg (OOM killer)",
    "give requests a time limit and let the router take dead engines out",
]


def detect(scene: Scene) -> Iterator[Found]:
    """Roots that are dead inference engines somebody awaits."""
    yield from find_dead(scene, ID, NAME, CAUSE, _REMEDY, engines=True)
