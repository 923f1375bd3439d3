"""What the site's Slurm does to steps; asked on the first node that knows."""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.doctor.answers import ok, unknown, warn
from ray_rl_debug.model.health import Health, Result

SHORT_S, SOON_S = 15, 300


def time_left(health: Health) -> Iterator[Result]:
    """After scancel a step has KillWait seconds to save logs and remove its files. A job close to its time limit ends before it has started up.

    Evidence: KillWait and UnkillableStepTimeout of the site, and the time that is left.
    Remedy: Save logs early; ask for more time.
    Not this when: The job is about to end on purpose.
    """
    slurm = next((n.slurm for n in health.nodes if n.slurm is not None), None)
    if slurm is None:
        return
    if slurm.kill_wait_s is None:
        yield unknown("scontrol show config gave no KillWait")
    elif slurm.kill_wait_s < SHORT_S:
        remedy = "ask the site for KillWait=30; the rendered job scripts begin to save logs at the first signal"
        yield warn(f"KillWait={slurm.kill_wait_s}", f"{SHORT_S}", "Ray's logs may not be saved after scancel", remedy)
    else:
        yield ok(f"KillWait={slurm.kill_wait_s}, UnkillableStepTimeout={slurm.unkillable_timeout_s}", f"{SHORT_S}")
    if slurm.left_s is not None and slurm.left_s < SOON_S:
        yield warn(f"job {slurm.job_id} has {slurm.left_s} s left", f"{SOON_S}", "the job ends before training begins", "sbatch --time=HH:MM:SS")


def memory(health: Health) -> Iterator[Result]:
    """Where Slurm manages memory, the first step takes all of the job's, and a second one fails: "Memory required by task is not available".
    --overlap shares CPUs and GPUs, not memory.

    Evidence: SelectTypeParameters of the site, and the memory this step was given.
    Remedy: Give every srun line --mem=0.
    Not this when: This step was given --mem=0.
    """
    node = next((n for n in health.nodes if n.slurm is not None and n.slurm.has_memory is not None), None)
    if node is None or node.slurm is None:
        return
    given = node.env.get("SLURM_MEM_PER_CPU") or node.env.get("SLURM_MEM_PER_NODE")
    if node.slurm.has_memory and given not in (None, "0"):
        consequence = "a second step beside this one cannot be created: Memory required by task is not available"
        yield warn("Slurm manages memory here, and this step took its share", "--mem=0", consequence, "srun --overlap --mem=0 ...")
    else:
        yield ok("Slurm manages memory, and steps share it" if node.slurm.has_memory else "Slurm does not manage memory here")


def inheritance(health: Health) -> Iterator[Result]:
    """Slurm 22.05 stopped passing --cpus-per-task from sbatch to srun. A step without its own gets one CPU.

    Evidence: Slurm's version and SRUN_CPUS_PER_TASK.
    Remedy: Export SRUN_CPUS_PER_TASK.
    Not this when: Every srun line has --cpus-per-task.
    """
    node = next((n for n in health.nodes if n.slurm is not None and n.slurm.version), None)
    if node is None or node.slurm is None or node.slurm.version is None:
        return
    version, given = f"Slurm {node.slurm.version}", node.env.get("SRUN_CPUS_PER_TASK")
    if tuple(int(w) for w in node.slurm.version.split(".")[:2] if w.isdigit()) < (22, 5):
        yield ok(f"{version}: steps inherit --cpus-per-task")
    elif given is not None:
        yield ok(f"{version}, SRUN_CPUS_PER_TASK={given}")
    else:
        remedy = f"export SRUN_CPUS_PER_TASK={node.cpus.slurm_per_task or node.cpus.slurm_on_node or 'N'}"
        yield warn(f"{version}, SRUN_CPUS_PER_TASK is not set", "set", "an srun line without --cpus-per-task gets one CPU", remedy)
