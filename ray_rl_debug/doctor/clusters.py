"""Which Ray runs where, and whether its ports are free."""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.doctor.answers import fail, ok, unknown, warn
from ray_rl_debug.doctor.plans import own_raylets
from ray_rl_debug.model.health import Health, NodeHealth, RayProcess, Result


def everywhere(health: Health) -> Iterator[Result]:
    """Ray runs on some nodes of a job and not on others: a raylet died or never joined. Its CPUs and GPUs are missing, and whatever needs them waits.

    Evidence: Raylets of this cluster on each node.
    Remedy: Read the start log of that node; look at its raylet's last lines.
    Not this when: A node was left out on purpose.
    """
    known = [n for n in health.nodes if not n.plan.is_preflight and n.ray is not None]
    without = [n for n in known if not own_raylets(n)]
    having = len(known) - len(without)
    if len(known) < 2 or not having:
        return
    for node in without:
        consequence = "its CPUs and GPUs are missing: a placement group that needs them waits forever"
        remedy = "rayrl-debug doctor --logs LOG_DIR; dmesg -T | grep -i 'killed process'"
        yield fail(f"no raylet runs here, {having} of {len(known)} nodes have one", "one", consequence, remedy, node=node.name)
    if not without:
        yield ok(f"a raylet on each of {len(known)} nodes")


def others(node: NodeHealth) -> Iterator[Result]:
    """A forgotten raylet takes CPUs, GPUs, memory and ports. ray.init() without an address may even join it instead of the job's own cluster.

    Evidence: Raylets and GCS servers of any user, their cluster and Slurm job.
    Remedy: End it, if it is yours; take exclusive nodes, or ports and folders of your own.
    Not this when: It is the cluster you ask about.
    """
    if node.ray is None:
        yield unknown("processes were not read")
        return
    strange = [p for p in node.ray if not _is_expected(p, node)]
    if not strange:
        count = sum(p.kind == "raylet" for p in node.ray)
        yield ok("no Ray runs" if not count else f"{count} raylet{'s' if count > 1 else ''} of this cluster")
        return
    consequence = "it takes CPUs, GPUs and ports; a program without RAY_ADDRESS may join it"
    yield warn("; ".join(map(_told, strange[:3])), "none", consequence, f"if it is yours: kill {' '.join(str(p.pid) for p in strange)}")


def _is_expected(process: RayProcess, node: NodeHealth) -> bool:
    if node.plan.address is not None:
        return process.address in (node.plan.address, None)
    if node.plan.slurm_job is not None:
        return process.slurm_job == node.plan.slurm_job
    return not node.plan.is_preflight and len({p.address for p in node.ray or () if p.address}) <= 1


def _told(process: RayProcess) -> str:
    job = f", Slurm job {process.slurm_job}" if process.slurm_job else ""
    return f"{process.kind} {process.pid} of {process.user}{job}" + (f", cluster {process.address}" if process.address else "")


def ports(node: NodeHealth) -> Iterator[Result]:
    """Another process listens on a port that Ray is going to use. ray start then only says that it cannot connect to the GCS.

    Evidence: An attempt to bind each planned port.
    Remedy: Use another block of ports.
    Not this when: The listener ends before Ray starts.
    """
    if node.ports is None:
        return
    taken, base = [p for p in node.ports if p.error is not None], node.plan.port_base
    text = "; ".join(f"{p.number} ({p.use}): {p.holder or p.error}" for p in taken)
    if not taken:
        yield ok(f"{len(node.ports)} ports are free")
    elif base is not None:
        remedy = f"PORT_BASE={base + 100} in the job script (the script takes the next free block by itself when it starts Ray)"
        yield warn(text, "free", "Ray cannot start on this block of ports", remedy)
    elif any(p.use == "GCS" for p in taken):
        consequence = "ray start --head waits and says only that it cannot connect to the GCS"
        yield fail(text, "free", consequence, "ray start --head --port=$((20000 + RANDOM % 10000))")
    else:
        yield warn(text, "free", "a second Ray has no dashboard or agent at its usual port", "ray start --dashboard-port=PORT ...")
