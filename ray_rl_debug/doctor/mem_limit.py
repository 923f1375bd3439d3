"""RRD810 Ray counts more memory than allowed

Story
    A job that may use a part of the node's memory is killed by the kernel when it uses more. Ray's memory monitor looks at the limit of its own
    control group only where it finds it.

Evidence
    Memory limit of the control group and memory of the machine.

Remedy
    Ask for all memory of the node, or tell Ray how much it has.

Not this when
    The job has the whole node.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.doctor.answers import gib, ok, unknown, warn
from ray_rl_debug.model.health import Health, Result

ID = "RRD810"
NAME = "Ray counts more memory than allowed"
CHECK = "mem.limit"


def examine(health: Health) -> Iterator[Result]:
    for node in health.nodes:
        total, limit = node.memory.total_bytes, node.memory.limit_bytes
        if total is None:
            yield unknown(node.name, "memory was not read")
        elif limit is None or limit >= 0.95 * total or (node.slurm is None and limit >= 0.5 * total):
            yield ok(node.name, f"{gib(total)}, {'no limit' if limit is None else 'limit ' + gib(limit)}")
        else:
            yield warn(
                node.name,
                f"limit {gib(limit)} of {gib(total)}",
                gib(total),
                "the kernel kills the job where Ray still sees free memory",
                f"sbatch --mem=0 (all of it), or ray start --memory={int(0.6 * limit)} --object-store-memory={int(0.3 * limit)}",
            )
