"""CPUs that Ray takes, CPUs that it may use, and what its start costs on them."""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.doctor.answers import fail, ok, unknown, warn
from ray_rl_debug.doctor.plans import intended_cpus, own_raylets, start_s, workers_at_once
from ray_rl_debug.doctor.pods import cpus_remedy
from ray_rl_debug.model.health import NodeHealth, RayProcess, Result

START_FAIL_SHARE, START_WARN_SHARE = 0.8, 0.4
"""Of the time that a raylet gives its workers."""
COLD_S = 20.0


def allowed(node: NodeHealth) -> Iterator[Result]:
    """Ray takes the machine's cores unless it is told; Slurm and containers allow fewer. Ray then starts one worker per core at once, they do not
    register in time on the few allowed cores, and ray.init() hangs without a message.

    Evidence: CPUs in the affinity mask, what Slurm gave, and what Ray would take or its raylet has taken.
    Remedy: Give Ray the number of allowed CPUs.
    Not this when: The mask holds as many CPUs as Ray takes.
    """
    raylets = [p for p in own_raylets(node) if p.cpus_claimed is not None and p.cpus_allowed]
    if node.plan.is_preflight:
        yield _allowed_before_start(node)
    elif not raylets:
        yield unknown("no raylet could be read")
    yield from (_allowed_to(raylet, node) for raylet in raylets)


def _allowed_to(raylet: RayProcess, node: NodeHealth) -> Result:
    claimed, may = int(raylet.cpus_claimed or 0), raylet.cpus_allowed or 0
    text, at_once = f"raylet {raylet.pid} offers {claimed} CPUs and may use {may}", workers_at_once(node, claimed)
    remedy = f"ray start ... --num-cpus={may}"
    if at_once > may:
        return fail(text, f"at most {may}", f"{at_once} workers start at once on {may} core{'s' * (may > 1)}; at start ray.init() hangs", remedy)
    return warn(text, f"at most {may}", "tasks share cores", remedy) if claimed > may else ok(text, f"at most {may}")


def _allowed_before_start(node: NodeHealth) -> Result:
    may, intended, per_task = node.cpus.allowed, intended_cpus(node), node.cpus.slurm_per_task
    if may is None or intended is None:
        return unknown("neither --num-cpus nor Ray's own guess is known")
    taken, source = intended
    at_once = workers_at_once(node, taken)
    text = f"Ray would take {taken} CPUs ({source}), {'Slurm' if node.slurm is not None else 'the affinity mask'} allows {may}"
    remedy = f"ray start --num-cpus={may}, or ray.init(num_cpus={may}) where the program starts Ray itself"
    if at_once > may:
        consequence = f"{at_once} workers would start at once on {may} core{'s' * (may > 1)} and ray.init() would hang"
        return fail(text, f"at most {may}", consequence, remedy)
    if taken > may:
        return warn(text, f"at most {may}", "tasks share cores", remedy)
    if per_task is not None and may < per_task:
        text, remedy = f"{may} CPUs may be used, SLURM_CPUS_PER_TASK is {per_task}", f"srun --cpus-per-task={per_task} --cpu-bind=none"
        return warn(text, f"{per_task}", "Ray gets fewer cores than the job pays for", remedy)
    return ok(f"{taken} CPUs for Ray ({source}), {may} allowed", f"at most {may}")


def step(node: NodeHealth) -> Iterator[Result]:
    """Since Slurm 22.05 a step does not inherit the job's --cpus-per-task, and many sites bind a task to one core. SLURM_CPUS_PER_TASK still says 64.

    Evidence: CPUs in the affinity mask and control group of this step, and of the whole job.
    Remedy: Ask for the CPUs again on the srun line, without binding.
    Not this when: The step was made small on purpose and does not run Ray.
    """
    cpus = node.cpus
    here = min((n for n in (cpus.allowed, cpus.step) if n is not None), default=None)
    job = cpus.job or cpus.slurm_on_node
    if node.slurm is None or here is None or job is None:
        return
    if here >= job:
        yield ok(f"{here} CPUs in this step, {job} in the job", f"{job}")
        return
    consequence = f"Ray runs on {here} of {job} cores; if it counts on all of them, ray.init() hangs"
    remedy = f"srun --cpus-per-task={job} --cpu-bind=none ..., and export SRUN_CPUS_PER_TASK={job}"
    yield fail(f"this step may use {here} CPUs, the job has {job} here", f"{job}", consequence, remedy)


def quota(node: NodeHealth) -> Iterator[Result]:
    """A control group may allow many cores but only a share of their time. Ray sees the cores.

    Evidence: cpu.max or cpu.cfs_quota_us along the control group's path, and the CPUs that Ray takes or has taken.
    Remedy: Give Ray as many CPUs as the quota allows.
    Not this when: No quota is set.
    """
    intended, cores = _taken(node), node.cpus.quota
    if node.cpus.machine is None:
        yield unknown("control groups were not read")
    elif cores is None:
        yield ok("no CPU quota")
    elif intended is None:
        yield ok(f"quota of {cores:g} cores")
    elif cores > intended[0] - 1:
        # a part of a core is a whole CPU for Ray
        yield ok(f"quota of {cores:g} cores, Ray takes {intended[0]} ({intended[1]})")
    else:
        text, remedy = f"quota of {cores:g} cores, Ray takes {intended[0]} ({intended[1]})", f"ray start --num-cpus={max(1, int(cores))}"
        if node.pod is not None:
            remedy = cpus_remedy(cores)
        yield warn(text, f"at least {intended[0]}", "the kernel throttles all workers, and they start slowly", remedy)


def _taken(node: NodeHealth) -> tuple[int, str] | None:
    """CPUs that Ray has taken here, or will take, and who says so."""
    # a raylet of another container has a quota of its own
    claims = [(int(p.cpus_claimed), f"raylet {p.pid}") for p in own_raylets(node) if p.cpus_claimed is not None and p.is_of_our_group]
    return max(claims) if claims else intended_cpus(node)


def start_cost(node: NodeHealth) -> Iterator[Result]:
    """A raylet gives its workers 60 seconds to import Ray and register. Many workers on few cores, or an environment on a slow shared file system,
    need longer; the driver then waits in ray.init() forever.

    Evidence: Time and CPU time of importing Ray here, cold and warm; workers that start together; allowed cores; the time-out.
    Remedy: Give Ray fewer CPUs, put the environment on a local disk, or allow more time.
    Not this when: The import was slow only once, because the page cache was cold.
    """
    start, intended, limit_s = node.start, intended_cpus(node), node.plan.register_timeout_s
    if not node.plan.is_preflight:
        return
    if start is None:
        yield unknown("importing Ray was not tried")
        return
    if start.error is not None:
        remedy = f"{node.versions.get('executable', 'python')} -X importtime -c 'import ray'"
        yield fail(f"import ray: {start.error}", "it can be imported", "no worker can start", remedy)
        return
    needed_s = start_s(node, intended[0]) if intended is not None else None
    if intended is None or needed_s is None:
        yield unknown("how many CPUs Ray would take is not known")
    else:
        workers = workers_at_once(node, intended[0])
        measured = f"{workers} workers, {start.cpu_s:.2f} CPU seconds each, on {node.cpus.allowed} cores: about {needed_s:.0f} s"
        threshold = f"{limit_s:g} s (RAY_worker_register_timeout_seconds)"
        if needed_s > START_FAIL_SHARE * limit_s:
            remedy = f"ray start --num-cpus={node.cpus.allowed}, or export RAY_worker_register_timeout_seconds={_whole_minutes(4 * needed_s)}"
            yield fail(measured, threshold, "workers do not register within the timeout; ray.init() hangs without a message", remedy)
        elif needed_s > START_WARN_SHARE * limit_s:
            remedy = f"export RAY_worker_register_timeout_seconds={_whole_minutes(5 * needed_s)} before ray start"
            yield warn(measured, threshold, "ray.init() hangs when the machine is busy", remedy)
        else:
            yield ok(measured, threshold)
    if start.cold_s is not None and start.cold_s > COLD_S:
        remedy = "keep the environment on a local disk (copy it in --setup), or in a container image"
        measured = f"the first import of Ray took {start.cold_s:.0f} s"
        yield warn(measured, f"{COLD_S:g} s", "a slow shared file system makes every worker late", remedy)


def _whole_minutes(seconds: float) -> int:
    return max(60, -(-int(seconds) // 60) * 60)
