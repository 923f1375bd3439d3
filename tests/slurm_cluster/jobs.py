"""Jobs of rendered scripts on the test Slurm: submitted, watched, and gone at the end."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ray_rl_debug.slurm.job import Job
from ray_rl_debug.slurm.render import render
from slurm_cluster.cluster import HERE, KILL_WAIT_S, USER, SlurmCluster, why_not

BIN = Path(sys.executable).parent
DRIVER = str(HERE / "both_nodes.py")
TRAINER = str(HERE / "train_both.py")
PATIENCE_S = 300


def running() -> Iterator[SlurmCluster]:
    """A Slurm of two nodes; where it cannot run, the tests are skipped with the reason."""
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    cluster = SlurmCluster()
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def cancel_all(slurm: SlurmCluster) -> None:
    """A job that a failed test left would hold the nodes against the next one."""
    for user in ("root", USER):
        slurm.run(["scancel", f"--user={user}"])
    deadline = time.monotonic() + KILL_WAIT_S + 60
    while slurm.run(["squeue", "--noheader"]).stdout.strip() and time.monotonic() < deadline:
        time.sleep(0.2)


def submit(
    slurm: SlurmCluster, *arguments: str, options: tuple[str, ...] = (), user: str | None = None, env: tuple[str, ...] = (), **more: object
) -> str:
    """The number of a job of a freshly rendered script."""
    folder = slurm.shared / f"job{time.monotonic_ns()}"
    folder.mkdir()
    folder.chmod(0o777)
    script = folder / "job.sbatch"
    wanted = {
        "framework": "ray",
        "nodes": 2,
        "gpus_per_node": "2",
        "time": "10",
        "object_store_mb": 100,
        "ready_timeout_s": PATIENCE_S,
        "watch": False,
        **more,
    }
    script.write_text(render(Job(**wanted, output_dir=str(folder / "logs"), env=(f"PATH={BIN}:$PATH", "RAY_worker_niceness=0", *env))))
    return slurm.sbatch(script, *arguments, options=(f"--output={folder}/out", *options), user=user)


def output(slurm: SlurmCluster, job: str) -> str:
    return Path(slurm.job(job)["StdOut"]).read_text(errors="replace")


def logs(slurm: SlurmCluster, job: str) -> Path:
    return Path(slurm.job(job)["StdOut"]).parent / "logs" / job


def wait_for_output(slurm: SlurmCluster, job: str, pattern: str, seconds: float = PATIENCE_S) -> re.Match[str]:
    deadline = time.monotonic() + seconds
    while True:
        text = output(slurm, job) if Path(slurm.job(job)["StdOut"]).exists() else ""
        found = re.search(pattern, text)
        if found:
            return found
        state = slurm.job(job)["JobState"]
        assert state in ("RUNNING", "PENDING", "COMPLETING", "CONFIGURING") and time.monotonic() < deadline, f"{state}: {text[-3000:]}"
        time.sleep(0.2)


def wait_for_text(file: Path, words: str, seconds: float = PATIENCE_S) -> None:
    deadline = time.monotonic() + seconds
    while words not in (file.read_text(errors="replace") if file.exists() else ""):
        assert time.monotonic() < deadline, f"{words!r} never stood in {file}"
        time.sleep(0.2)


def assert_nothing_left(slurm: SlurmCluster, job: str, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while any(left := [slurm.processes(name) + in_temp_dir(slurm, name, job) for name in slurm.names]):
        assert time.monotonic() < deadline, (left, *(path.read_text(errors="replace")[-1500:] for path in logs(slurm, job).glob("start-*.log")))
        time.sleep(0.3)


def in_temp_dir(slurm: SlurmCluster, name: str, job: str) -> list[str]:
    """The beginning of what is in the folder that a job made on a node; empty when the folder is gone."""
    return slurm.on_node(name, ["bash", "-c", f"find /tmp/rr{job} 2>/dev/null | head -n 20"]).stdout.splitlines()
