"""The process of a Slurm job that stands for it on this node: its environment, limits and control groups are the job's, ours are not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from ray_rl_debug.collect.procfs import PROC, list_pids, read_environment, read_stat


class JobProcess(msgspec.Struct, frozen=True, kw_only=True):
    """Stays in this process: the environment is whole."""

    pid: int
    env: dict[str, str]


def find_job_process(job_id: str, own: Mapping[str, str], proc: Path = PROC) -> JobProcess | None:
    """The job's raylet here, else the oldest process of its steps, else of its batch script; None where none is there or may be read.

    Args:
        job_id: Slurm's number of the job.
        own: Our own environment; processes of our own step are not the job's.
        proc: The process table.
    """
    best: tuple[tuple[bool, bool, int], JobProcess] | None = None
    for pid in list_pids(proc):
        stat = read_stat(proc / str(pid))
        if stat is None or stat.state in ("Z", "X") or stat.comm == "slurmstepd":
            continue
        env = dict(read_environment(pid, proc) or ())
        if env.get("SLURM_JOB_ID") != job_id or (own.get("SLURM_JOB_ID") == job_id and env.get("SLURM_STEP_ID") == own.get("SLURM_STEP_ID")):
            continue
        order = (stat.comm != "raylet", "SLURM_STEP_ID" not in env, stat.start_ticks)
        if best is None or order < best[0]:
            best = order, JobProcess(pid=pid, env=env)
    return best[1] if best else None
