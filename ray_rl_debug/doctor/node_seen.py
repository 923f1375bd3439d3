"""RRD834 a node gave no answer

Story
    A node that cannot be looked at may be the one that is sick.

Evidence
    Why nothing came from it.

Remedy
    Look from the node itself.

Not this when
    The node left the cluster on purpose.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.doctor.answers import fail, ok
from ray_rl_debug.model.health import Health, Result

ID = "RRD834"
NAME = "a node gave no answer"
CHECK = "node.seen"


def examine(health: Health) -> Iterator[Result]:
    for name, reason in health.silent:
        remedy = f"ssh {name} rayrl-debug doctor --here"
        if name.startswith("cluster "):
            remedy = "on the head node: rayrl-debug doctor --logs /tmp/ray/session_latest, and rayrl-debug snapshot --here"
        yield fail(name, reason, "an answer", "nothing is known of it", remedy)
    if not health.silent:
        yield ok(None, f"{len(health.nodes)} node{'s' if len(health.nodes) != 1 else ''} answered")
