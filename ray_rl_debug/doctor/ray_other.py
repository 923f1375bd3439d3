"""RRD814 another Ray runs on this node

Story
    A forgotten raylet takes CPUs, GPUs, memory and ports. ray.init() without an address may even join it instead of the job's own cluster.

Evidence
    Raylets and GCS servers of any user, their cluster and Slurm job.

Remedy
    End it, if it is yours; take exclusive nodes, or ports and folders of your own.

Not this when
    It is the cluster you ask about.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.doctor.answers import ok, unknown, warn
from ray_rl_debug.model.health import Health, NodeHealth, RayProcess, Result

ID = "RRD814"
NAME = "another Ray runs on this node"
CHECK = "ray.other"


def examine(health: Health) -> Iterator[Result]:
    for node in health.nodes:
        if node.ray is None:
            yield unknown(node.name, "processes were not read")
            continue
        others = [p for p in node.ray if not _is_expected(p, node)]
        if not others:
            count = sum(p.kind == "raylet" for p in node.ray)
            yield ok(node.name, "no Ray runs" if not count else f"{count} raylet{'s' if count > 1 else ''} of this cluster")
            continue
        pids = " ".join(str(p.pid) for p in others)
        consequence = "it takes CPUs, GPUs and ports; a program without RAY_ADDRESS may join it"
        yield warn(node.name, "; ".join(map(_told, others[:3])), "none", consequence, f"if it is yours: kill {pids}")


def _is_expected(process: RayProcess, node: NodeHealth) -> bool:
    if node.plan.address is not None:
        return process.address in (node.plan.address, None)
    if node.plan.slurm_job is not None:
        return process.slurm_job == node.plan.slurm_job
    if node.plan.is_preflight:
        return False
    clusters = {p.address for p in node.ray or () if p.address}
    return len(clusters) <= 1


def _told(process: RayProcess) -> str:
    job = f", Slurm job {process.slurm_job}" if process.slurm_job else ""
    return f"{process.kind} {process.pid} of {process.user}{job}" + (f", cluster {process.address}" if process.address else "")
