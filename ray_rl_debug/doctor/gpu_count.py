"""RRD822 Ray's GPUs are not those that are there

Story
    Ray is told of more GPUs than the node has or the job may use: two workers share one, or CUDA fails with "invalid device ordinal". Told of
    fewer, placement groups never fit.

Evidence
    GPUs that NVML counts, CUDA_VISIBLE_DEVICES, what Slurm gave, what Ray is told.

Remedy
    Tell Ray the number that the job has.

Not this when
    The node is meant to have no GPUs.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.doctor.answers import fail, ok
from ray_rl_debug.doctor.plans import own_raylets
from ray_rl_debug.model.health import Health, NodeHealth, Result

ID = "RRD822"
NAME = "Ray's GPUs are not those that are there"
CHECK = "gpu.count"


def examine(health: Health) -> Iterator[Result]:
    for node in health.nodes:
        told, usable = _told(node), _usable(node)
        if told is None or usable is None:
            continue
        count, source = usable
        if told > count:
            consequence = "workers are placed on GPUs that are not there: invalid device ordinal"
            yield fail(
                node.name, f"Ray is told of {told:g} GPUs, {count} usable ({source})", f"{count}", consequence, f"ray start --num-gpus={count}"
            )
        elif told < count and told > 0:
            yield fail(
                node.name,
                f"Ray is told of {told:g} GPUs, {count} usable ({source})",
                f"{count}",
                "GPUs stay idle, larger placement groups never fit",
                f"ray start --num-gpus={count}",
            )
        else:
            yield ok(node.name, f"{told:g} GPUs for Ray, {count} usable ({source})", f"{count}")
    counts = {n.name: u[0] for n in health.nodes if (u := _usable(n)) is not None}
    if len(set(counts.values())) > 1:
        text = ", ".join(f"{n}: {c}" for n, c in sorted(counts.items())[:6])
        yield fail(None, f"usable GPUs differ: {text}", "equal", "trainer.n_gpus_per_node cannot hold on all nodes", "nvidia-smi -L on the odd node")


def _told(node: NodeHealth) -> float | None:
    if node.plan.num_gpus is not None:
        return node.plan.num_gpus
    return next((p.gpus_claimed for p in own_raylets(node) if p.gpus_claimed is not None), None)


def _usable(node: NodeHealth) -> tuple[int, str] | None:
    """GPUs that this job may use, and who says so."""
    if node.gpus is None:
        return None
    counts = []
    if node.gpus.devices is not None:
        counts.append((len([g for g in node.gpus.devices if g.mig_parent is None]), "NVML"))
    visible = node.env.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        counts.append((len([x for x in visible.split(",") if x.strip() and x.strip() != "-1"]), "CUDA_VISIBLE_DEVICES"))
    if node.gpus.slurm is not None:
        counts.append((node.gpus.slurm, "Slurm"))
    if not counts and not node.gpus.has_driver:
        return 0, "no NVIDIA driver"
    return min(counts, default=None)
