"""RRD815 a port of Ray is taken

Story
    Another process listens on a port that Ray is going to use. ray start then only says that it cannot connect to the GCS.

Evidence
    An attempt to bind each planned port.

Remedy
    Another block of ports.

Not this when
    The listener ends before Ray starts.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.doctor.answers import fail, ok, warn
from ray_rl_debug.model.health import Health, Result

ID = "RRD815"
NAME = "a port of Ray is taken"
CHECK = "port.block"


def examine(health: Health) -> Iterator[Result]:
    for node in health.nodes:
        if node.ports is None:
            continue
        taken = [p for p in node.ports if p.error is not None]
        if not taken:
            yield ok(node.name, f"{len(node.ports)} ports are free")
            continue
        text = "; ".join(f"{p.number} ({p.use}): {p.holder or p.error}" for p in taken)
        base = node.plan.port_base
        if base is not None:
            remedy = f"PORT_BASE={base + 100} in the job script (it moves on by itself when it starts Ray)"
            yield warn(node.name, text, "free", "Ray cannot start with this block of ports", remedy)
        elif any(p.use == "GCS" for p in taken):
            consequence = "ray start --head waits and says only that it cannot connect to the GCS"
            yield fail(node.name, text, "free", consequence, "ray start --head --port=$((20000 + RANDOM % 10000))")
        else:
            yield warn(node.name, text, "free", "a second Ray has no dashboard or agent at its usual port", "ray start --dashboard-port=PORT ...")
