"""RRD826 clocks differ

Story
    Logs and timelines of several nodes are put in order by their clocks. Tokens and certificates fail when clocks are far apart.

Evidence
    This node's clock against the first node's over a TCP connection, or against a shared file system's time stamps.

Remedy
    Let the nodes keep time with chrony or ntpd.

Not this when
    The difference is smaller than the way there and back.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.doctor.answers import fail, ok, warn
from ray_rl_debug.model.health import Health, NodeHealth, Result

ID = "RRD826"
NAME = "clocks differ"
CHECK = "clock.skew"
WARN_S, FAIL_S = 1.0, 30.0


def examine(health: Health) -> Iterator[Result]:
    for node in health.nodes:
        measured = _measured(node)
        if measured is None:
            continue
        ahead_s, bound_s, against = measured
        text = f"{abs(ahead_s):.3f} s {'ahead of' if ahead_s > 0 else 'behind'} {against}"
        apart = abs(ahead_s) - bound_s
        if apart > FAIL_S:
            yield fail(node.name, text, f"{FAIL_S:g} s", "logs of several nodes cannot be put in order; tokens may be refused", "chronyc makestep")
        elif apart > WARN_S:
            yield warn(node.name, text, f"{WARN_S:g} s", "logs of several nodes are in the wrong order", "chronyc makestep")
        else:
            yield ok(node.name, text, f"{WARN_S:g} s")


def _measured(node: NodeHealth) -> tuple[float, float, str] | None:
    for contact in node.contacts or ():
        if contact.clock_ahead_s is not None:
            return contact.clock_ahead_s, contact.bound_s or 0.0, contact.peer
    if node.logs is not None and node.logs.clock_ahead_s is not None:
        return node.logs.clock_ahead_s, 0.1, "the log folder's file system"
    return None
