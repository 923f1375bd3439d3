"""RRD832 steps do not inherit --cpus-per-task

Story
    Slurm 22.05 stopped passing --cpus-per-task from sbatch to srun. A step without its own gets one CPU.

Evidence
    Slurm's version and SRUN_CPUS_PER_TASK.

Remedy
    Export SRUN_CPUS_PER_TASK.

Not this when
    Every srun line has --cpus-per-task.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.doctor.answers import ok, warn
from ray_rl_debug.model.health import Health, Result

ID = "RRD832"
NAME = "steps do not inherit --cpus-per-task"
CHECK = "slurm.ver"


def examine(health: Health) -> Iterator[Result]:
    node = next((n for n in health.nodes if n.slurm is not None and n.slurm.version), None)
    if node is None or node.slurm is None or node.slurm.version is None:
        return
    words = node.slurm.version.split(".")
    version = tuple(int(w) for w in words[:2] if w.isdigit())
    if version < (22, 5):
        yield ok(None, f"Slurm {node.slurm.version}: steps inherit --cpus-per-task")
    elif "SRUN_CPUS_PER_TASK" in node.env:
        yield ok(None, f"Slurm {node.slurm.version}, SRUN_CPUS_PER_TASK={node.env['SRUN_CPUS_PER_TASK']}")
    else:
        consequence = "an srun line without --cpus-per-task gets one CPU"
        wanted = node.cpus.slurm_per_task or node.cpus.slurm_on_node or "N"
        yield warn(None, f"Slurm {node.slurm.version}, SRUN_CPUS_PER_TASK is not set", "set", consequence, f"export SRUN_CPUS_PER_TASK={wanted}")
