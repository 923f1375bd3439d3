"""RRD830 Slurm leaves little time

Story
    After scancel a step has KillWait seconds to save logs and remove its files. A job close to its time limit ends in the middle of start-up.

Evidence
    KillWait and UnkillableStepTimeout of the site, and the time that is left.

Remedy
    Save logs early; ask for more time.

Not this when
    The job is about to end on purpose.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.doctor.answers import ok, unknown, warn
from ray_rl_debug.model.health import Health, Result

ID = "RRD830"
NAME = "Slurm leaves little time"
CHECK = "slurm.kill"
SHORT_S, SOON_S = 15, 300


def examine(health: Health) -> Iterator[Result]:
    node = next((n for n in health.nodes if n.slurm is not None), None)
    if node is None or node.slurm is None:
        return
    slurm = node.slurm
    if slurm.kill_wait_s is None:
        yield unknown(None, "scontrol show config gave no KillWait")
    elif slurm.kill_wait_s < SHORT_S:
        remedy = "ask the site for KillWait=30; the rendered job scripts begin to save logs at the first signal"
        yield warn(None, f"KillWait={slurm.kill_wait_s}", f"{SHORT_S}", "Ray's logs may not be saved after scancel", remedy)
    else:
        yield ok(None, f"KillWait={slurm.kill_wait_s}, UnkillableStepTimeout={slurm.unkillable_timeout_s}", f"{SHORT_S}")
    if slurm.left_s is not None and slurm.left_s < SOON_S:
        yield warn(None, f"job {slurm.job_id} has {slurm.left_s} s left", f"{SOON_S}", "it ends before training begins", "sbatch --time=HH:MM:SS")
