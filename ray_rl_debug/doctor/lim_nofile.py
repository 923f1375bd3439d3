"""RRD807 too few open files allowed

Story
    The raylet and the GCS keep several sockets per worker. Out of descriptors, a raylet aborts or refuses workers.

Evidence
    RLIMIT_NOFILE.

Remedy
    Raise the soft limit to the hard one before ray start.

Not this when
    The limit was raised in the job's script only: it must be raised in the step.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.doctor.answers import fail, ok, unknown, warn
from ray_rl_debug.model.health import Health, Result

ID = "RRD807"
NAME = "too few open files allowed"
CHECK = "lim.nofile"
FAIL_BELOW, WARN_BELOW = 4096, 65535
_SITE = "ask the site for LimitNOFILE=1048576 in slurmd.service"


def examine(health: Health) -> Iterator[Result]:
    for node in health.nodes:
        limit = node.limits.files
        if limit is None:
            yield unknown(node.name, "limits were not read")
            continue
        soft, can_raise = limit.soft, limit.hard is None or (limit.soft is not None and limit.hard > limit.soft)
        remedy = 'ulimit -Sn "$(ulimit -Hn)"' if can_raise else _SITE
        text = f"ulimit -n {'unlimited' if soft is None else soft}"
        if soft is None or soft >= WARN_BELOW:
            yield ok(node.name, text, f"{WARN_BELOW}")
        elif soft < FAIL_BELOW:
            yield fail(node.name, text, f"{FAIL_BELOW}", "Ray's daemons run out of descriptors and abort", remedy)
        else:
            yield warn(node.name, text, f"{WARN_BELOW}", "with hundreds of workers Ray's daemons run out of descriptors", remedy)
