"""GPUs: how many, whose, and does their driver answer?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ray_rl_debug.doctor.answers import fail, gib, listed, ok, unknown, warn
from ray_rl_debug.doctor.plans import own_raylets
from ray_rl_debug.model.health import Health, NodeHealth, Result

FREE_BYTES = 1 << 30
_OTHERS = ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")


def count(node: NodeHealth) -> Iterator[Result]:
    """Ray counts on more GPUs than the node has or the job may use: two workers share one, or CUDA fails with "invalid device ordinal". If it
    counts on fewer, large placement groups never fit.

    Evidence: GPUs that NVML counts, CUDA_VISIBLE_DEVICES, what Slurm gave, what Ray is told.
    Remedy: Tell Ray the number of GPUs that the job has.
    Not this when: The node is meant to have no GPUs.
    """
    told: float | None = node.plan.num_gpus
    if told is None:
        told = next((p.gpus_claimed for p in own_raylets(node) if p.gpus_claimed is not None), None)
    found = _usable(node)
    if told is None or found is None:
        return
    number, source = found
    text, remedy = f"Ray counts on {told:g} GPUs, the job may use {number} ({source})", f"ray start --num-gpus={number}"
    if told > number:
        yield fail(text, f"{number}", "Ray places workers on GPUs that do not exist: invalid device ordinal", remedy)
    elif 0 < told < number:
        yield fail(text, f"{number}", "GPUs stay idle, and large placement groups never fit", remedy)
    else:
        yield ok(f"{told:g} GPUs for Ray, the job may use {number} ({source})", f"{number}")


def counts(health: Health) -> Iterator[Result]:
    """Have all nodes as many?"""
    numbers = {n.name: u[0] for n in health.nodes if (u := _usable(n)) is not None}
    if len(set(numbers.values())) > 1:
        consequence = "trainer.n_gpus_per_node cannot hold on all nodes"
        yield fail(f"usable GPUs differ: {listed(numbers)}", "equal", consequence, "nvidia-smi -L on the odd node")


def _usable(node: NodeHealth) -> tuple[int, str] | None:
    """GPUs that this job may use, and who says so."""
    if node.gpus is None:
        return None
    numbers = []
    if node.gpus.devices is not None:
        numbers.append((len([g for g in node.gpus.devices if g.mig_parent is None]), "NVML"))
    visible = node.env.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        numbers.append((len([x for x in visible.split(",") if x.strip() and x.strip() != "-1"]), "CUDA_VISIBLE_DEVICES"))
    if node.gpus.slurm is not None:
        numbers.append((node.gpus.slurm, "Slurm"))
    if not numbers and not node.gpus.has_driver:
        return 0, "no NVIDIA driver"
    return min(numbers, default=None)


def variables(node: NodeHealth) -> Iterator[Result]:
    """Slurm sets CUDA_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES in every step. verl refuses to start a worker that has both, and values that differ
    hide devices.

    Evidence: The variables in this process and in the raylet's environment.
    Remedy: Unset the one of the other vendor before ray start.
    Not this when: Only one vendor's variable is set.
    """
    places: list[tuple[str, Mapping[str, str]]] = [("", node.env), *((f" (raylet {p.pid})", p.env) for p in own_raylets(node) if p.env)]
    for place, env in places:
        cuda, others = env.get("CUDA_VISIBLE_DEVICES"), [v for v in _OTHERS if env.get(v)]
        if cuda and others:
            say = fail if any(env[v] != cuda for v in others) else warn
            text = f"CUDA_VISIBLE_DEVICES={cuda}, " + ", ".join(f"{v}={env[v]}" for v in others) + place
            yield say(text, "one of them", "verl refuses to start its workers", f"unset {' '.join(others)} before ray start")
        elif not place:
            yield ok(f"CUDA_VISIBLE_DEVICES={cuda}" if cuda else "no device variable clashes")


def busy(node: NodeHealth) -> Iterator[Result]:
    """A process that survived the last job still holds GPU memory: the engine then has too little for its cache, or runs out of memory at once.

    Evidence: GPU memory in use and the processes that NVML lists.
    Remedy: End the process, or have the node drained.
    Not this when: The job runs already.
    """
    devices = node.gpus.devices if node.gpus is not None and node.plan.is_preflight else None
    used = [g for g in devices or () if (g.memory_used_bytes or 0) > FREE_BYTES]
    if devices and not used:
        yield ok(f"{len(devices)} GPUs are free", f"less than {gib(FREE_BYTES)} in use")
    for gpu in used:
        pids = " ".join(map(str, gpu.pids))
        text = f"GPU {gpu.index}: {gib(gpu.memory_used_bytes or 0)} in use" + (f" by {pids}" if pids else "")
        remedy = f"if it is yours: kill {pids}" if pids else "nvidia-smi; fuser -v /dev/nvidia*"
        yield warn(text, f"less than {gib(FREE_BYTES)}", "too little memory for the model or its cache", remedy)


def driver(node: NodeHealth) -> Iterator[Result]:
    """NVML says nothing, or that driver and library differ: after an update without a reboot, with an Xid, or when a GPU fell off the bus. CUDA fails
    or hangs on such a node.

    Evidence: NVML's answer within a deadline, and the driver's version on each node.
    Remedy: Look at the kernel's log; reboot or drain the node.
    Not this when: The node has no NVIDIA device.
    """
    has = node.gpus
    if has is None:
        yield unknown("GPUs were not read")
    elif has.error is not None and "binding" in has.error:
        yield warn(has.error, "NVML answers", "reports have no GPU facts", "pip install nvidia-ml-py")
    elif has.error is not None:
        yield fail(has.error, "NVML answers", "CUDA fails or hangs on this node", "nvidia-smi -q; dmesg | grep -i -e xid -e nvrm")
    else:
        yield ok(f"driver {has.driver or '?'}, {len(has.devices)} x {has.devices[0].name}" if has.devices else "no NVIDIA device")


def drivers(health: Health) -> Iterator[Result]:
    """Is it of one version everywhere?"""
    found = {n.name: n.gpus.driver for n in health.nodes if n.gpus is not None and n.gpus.driver is not None}
    if len(set(found.values())) > 1:
        text = f"drivers differ: {listed(found)}"
        yield warn(text, "equal", "one CUDA build may not run on all nodes", "drain the odd node and update it")
