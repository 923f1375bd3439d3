"""RRD835 a node of the job without Ray

Story
    Ray runs on some nodes of a job and not on others: a raylet died or never joined. Its CPUs and GPUs are missing; what needs them waits.

Evidence
    Raylets of this cluster on each node.

Remedy
    Read the start log of that node; look at its raylet's last lines.

Not this when
    A node was left out on purpose.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.doctor.answers import fail, ok
from ray_rl_debug.doctor.plans import own_raylets
from ray_rl_debug.model.health import Health, Result

ID = "RRD835"
NAME = "a node of the job without Ray"
CHECK = "ray.all"


def examine(health: Health) -> Iterator[Result]:
    known = [n for n in health.nodes if not n.plan.is_preflight and n.ray is not None]
    having = [n for n in known if own_raylets(n)]
    if len(known) < 2 or not having:
        return
    for node in known:
        if node not in having:
            consequence = "its CPUs and GPUs are missing: a placement group that needs them waits for ever"
            remedy = "rayrl-debug doctor --logs LOG_DIR; dmesg -T | grep -i 'killed process'"
            yield fail(node.name, f"no raylet runs here, {len(having)} of {len(known)} nodes have one", "one", consequence, remedy)
    if len(having) == len(known):
        yield ok(None, f"a raylet on each of {len(known)} nodes")
