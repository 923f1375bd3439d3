"""RRD831 steps must share memory

Story
    Where memory is a resource, the first step takes all of the job's, and a second one fails: "Memory required by task is not available". --overlap
    shares CPUs and GPUs, not memory.

Evidence
    SelectTypeParameters of the site, and the memory this step was given.

Remedy
    --mem=0 on every srun line.

Not this when
    This step was given --mem=0.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.doctor.answers import ok, warn
from ray_rl_debug.model.health import Health, Result

ID = "RRD831"
NAME = "steps must share memory"
CHECK = "slurm.mem"


def examine(health: Health) -> Iterator[Result]:
    node = next((n for n in health.nodes if n.slurm is not None and n.slurm.has_memory is not None), None)
    if node is None or node.slurm is None:
        return
    given = node.env.get("SLURM_MEM_PER_CPU") or node.env.get("SLURM_MEM_PER_NODE")
    if node.slurm.has_memory and given not in (None, "0"):
        consequence = "a second step beside this one cannot be created: Memory required by task is not available"
        yield warn(None, "memory is a resource here, and this step took its share", "--mem=0", consequence, "srun --overlap --mem=0 ...")
    else:
        yield ok(None, "memory is a resource that steps share" if node.slurm.has_memory else "memory is not a resource here")
