"""RRD803 the step has fewer CPUs than the job

Story
    Since Slurm 22.05 a step does not inherit the job's --cpus-per-task, and many sites bind a task to one core. SLURM_CPUS_PER_TASK still says 64.

Evidence
    CPUs in the affinity mask and control group of this step, and of the whole job.

Remedy
    Ask for the CPUs again on the srun line, without binding.

Not this when
    The step was made small on purpose and does not run Ray.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.doctor.answers import fail, ok
from ray_rl_debug.model.health import Health, Result

ID = "RRD803"
NAME = "the step has fewer CPUs than the job"
CHECK = "cpu.step"


def examine(health: Health) -> Iterator[Result]:
    for node in health.nodes:
        cpus = node.cpus
        of_step = min((n for n in (cpus.allowed, cpus.step) if n is not None), default=None)
        of_job = cpus.job or cpus.slurm_on_node
        if node.slurm is None or of_step is None or of_job is None:
            continue
        if of_step < of_job:
            yield fail(
                node.name,
                f"this step may use {of_step} CPUs, the job has {of_job} here",
                f"{of_job}",
                f"Ray runs on {of_step} of {of_job} cores; told of all of them, ray.init() hangs",
                f"srun --cpus-per-task={of_job} --cpu-bind=none ..., and export SRUN_CPUS_PER_TASK={of_job}",
            )
        else:
            yield ok(node.name, f"{of_step} CPUs in this step, {of_job} in the job", f"{of_job}")
