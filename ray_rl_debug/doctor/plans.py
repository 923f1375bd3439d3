"""What Ray is going to take on a node, or has taken, and what that means in workers."""

from __future__ import annotations

from ray_rl_debug.model.health import NodeHealth, RayProcess

WORKER_FACTOR = 1.2
"""CPU time of a worker until it registers, in imports of Ray (0.35 s against 0.29 s with Ray 2.60)."""
SERVICES_CPU_S = 4.0
"""CPU time of the GCS, the raylet, its agents and the driver during start, on the same cores."""


def own_raylets(node: NodeHealth) -> tuple[RayProcess, ...]:
    """Raylets of the cluster or Slurm job in question; of all clusters here when none was named, and none before start."""
    if node.plan.is_preflight:
        return ()
    address, job = node.plan.address, node.plan.slurm_job
    here = (p for p in node.ray or () if p.kind == "raylet" and job in (None, p.slurm_job))
    return tuple(p for p in here if address is None or p.address == address)


def intended_cpus(node: NodeHealth) -> tuple[int, str] | None:
    """CPUs that Ray will be given, and by whom; None when nobody can tell."""
    if node.plan.num_cpus is not None:
        return node.plan.num_cpus, f"--num-cpus={node.plan.num_cpus}"
    if node.start is not None and node.start.ray_cpus is not None:
        return node.start.ray_cpus, "Ray's own guess"
    return None


def workers_at_once(node: NodeHealth, num_cpus: int) -> int:
    """Workers that a raylet starts together: no more than the machine has CPUs (Ray's maximum start-up concurrency)."""
    return min(num_cpus, node.cpus.machine or num_cpus)


def start_s(node: NodeHealth, num_cpus: int) -> float | None:
    """Seconds until all of them have registered."""
    if node.start is None or node.start.cpu_s is None or not node.cpus.allowed:
        return None
    work = workers_at_once(node, num_cpus) * node.start.cpu_s * WORKER_FACTOR + SERVICES_CPU_S
    return work / node.cpus.allowed
