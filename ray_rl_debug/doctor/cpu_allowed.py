"""RRD802 more CPUs for Ray than allowed

Story
    Ray takes the machine's cores unless it is told; Slurm and containers allow fewer. Ray then starts one worker per core at once, they do not
    register in time on the few allowed cores, and ray.init() hangs without a word.

Evidence
    CPUs in the affinity mask, what Slurm gave, and what Ray would take or its raylet has taken.

Remedy
    Give Ray the number of allowed CPUs.

Not this when
    The mask holds as many CPUs as Ray takes.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.doctor.answers import fail, ok, unknown, warn
from ray_rl_debug.doctor.plans import intended_cpus, own_raylets, workers_at_once
from ray_rl_debug.model.health import Health, NodeHealth, RayProcess, Result

ID = "RRD802"
NAME = "more CPUs for Ray than allowed"
CHECK = "cpu.allowed"


def examine(health: Health) -> Iterator[Result]:
    for node in health.nodes:
        raylets = [p for p in own_raylets(node) if p.cpus_claimed is not None and p.cpus_allowed]
        if node.plan.is_preflight:
            yield from _planned(node)
        elif not raylets:
            yield unknown(node.name, "no raylet that could be read")
        else:
            yield from (_running(node, raylet) for raylet in raylets)


def _running(node: NodeHealth, raylet: RayProcess) -> Result:
    claimed, allowed = int(raylet.cpus_claimed or 0), raylet.cpus_allowed or 0
    text = f"raylet {raylet.pid} offers {claimed} CPUs and may use {allowed}"
    remedy = f"ray start ... --num-cpus={allowed}"
    if workers_at_once(node, claimed) > allowed:
        consequence = f"{workers_at_once(node, claimed)} workers start at once on {allowed} core{'s' * (allowed > 1)}; at start ray.init() hangs"
        return fail(node.name, text, f"at most {allowed}", consequence, remedy)
    if claimed > allowed:
        return warn(node.name, text, f"at most {allowed}", "tasks share cores", remedy)
    return ok(node.name, text, f"at most {allowed}")


def _planned(node: NodeHealth) -> Iterator[Result]:
    allowed, intended = node.cpus.allowed, intended_cpus(node)
    if allowed is None or intended is None:
        yield unknown(node.name, "neither --num-cpus nor Ray's own guess is known")
        return
    taken, source = intended
    at_once = workers_at_once(node, taken)
    text = f"Ray would take {taken} CPUs ({source}), {_who(node)} allows {allowed}"
    remedy = f"ray start --num-cpus={allowed}, or ray.init(num_cpus={allowed}) where the program starts Ray itself"
    if at_once > allowed:
        consequence = f"{at_once} workers would start at once on {allowed} core{'s' * (allowed > 1)} and ray.init() would hang"
        yield fail(node.name, text, f"at most {allowed}", consequence, remedy)
    elif taken > allowed:
        yield warn(node.name, text, f"at most {allowed}", "tasks share cores", remedy)
    elif node.cpus.slurm_per_task is not None and allowed < node.cpus.slurm_per_task:
        yield warn(
            node.name,
            f"{allowed} CPUs may be used, SLURM_CPUS_PER_TASK is {node.cpus.slurm_per_task}",
            f"{node.cpus.slurm_per_task}",
            "Ray gets fewer cores than the job pays for",
            f"srun --cpus-per-task={node.cpus.slurm_per_task} --cpu-bind=none",
        )
    else:
        yield ok(node.name, f"{taken} CPUs for Ray ({source}), {allowed} allowed", f"at most {allowed}")


def _who(node: NodeHealth) -> str:
    return "Slurm" if node.slurm is not None else "the affinity mask"
