"""On CUDA the Python thread runs ahead and waits later, at any line that needs a result: is that wait a collective, or work?

A NCCL kernel that waits for its peers spins: NVML then shows full utilisation at little more than idle power, while kernels that compute
draw most of what the card may. Both numbers are needed; where either is missing nothing is concluded.
"""

from __future__ import annotations

import msgspec

from ray_rl_debug.analyze.kinds_of_places import Kind
from ray_rl_debug.analyze.places import Place
from ray_rl_debug.model.snapshot import Gpu, Node, Process

GPU_COLLECTIVE = "a collective on the GPU"
"""Operation of a place that waits so; the line says where the result is needed, not which collective it is."""

SPIN_UTILIZATION_PERCENT = 95.0
SPIN_POWER_SHARE = 0.35
"""Of the power limit. Cards of 400 to 700 W idle at a tenth to a sixth of it, and waiting kernels add little."""

WORK_POWER_SHARE = 0.5


def waits_on_gpu(node: Node, process: Process, places: list[Place]) -> str | None:
    """Why a thread that stands at one place waits in a collective on its GPU; None when it does not, or when that cannot be told."""
    if not places or places[0].kind not in (Kind.CUDA, Kind.CODE):
        return None
    if any(p is not places[0] and (p.path, p.op) != (places[0].path, places[0].op) for p in places):
        return None
    gpu = _own_gpu(node, process)
    # a neighbour on the same card may be the one that spins while this process computes on its CPU
    if gpu is None or (places[0].kind is Kind.CODE and any(pid != process.pid for pid in gpu.pids)):
        return None
    share = _power_share(gpu)
    if share is None or gpu.utilization_percent is None or gpu.utilization_percent < SPIN_UTILIZATION_PERCENT or share > SPIN_POWER_SHARE:
        return None
    return f"GPU {gpu.index} at {gpu.utilization_percent:.0f} % with {gpu.power_watts:.0f} of {gpu.power_limit_watts:.0f} W: its kernel spins"


def works_on_gpu(node: Node, process: Process) -> str | None:
    """Why the process's GPU counts as at work; None when it does not, or when that cannot be told."""
    gpu = _own_gpu(node, process)
    share = _power_share(gpu) if gpu is not None else None
    if gpu is None or share is None or not gpu.utilization_percent or share < WORK_POWER_SHARE:
        return None
    return f"GPU {gpu.index} works at {gpu.power_watts:.0f} of {gpu.power_limit_watts:.0f} W"


def asks_gpu(node: Node, process: Process, places: list[Place], tid: int | None) -> str | None:
    """Why a thread that uses a core at one place is not seen to work: it asks its GPU again and again whether that is done, as CUDA's waits do.

    None where the GPU computes, and where it waits for none. In a line of own code it may also compute itself; that is asked only where its GPU
    spins, so that one of the two is no progress.
    """
    if not places or places[0].kind not in (Kind.CUDA, Kind.CODE) or (places[0].kind is Kind.CODE and any(r.tid == tid for r in process.in_c)):
        return None  # what it does in C was read, and is no wait
    if any(p.kind is not places[0].kind or p.path != places[0].path for p in places):
        return None
    gpu = _own_gpu(node, process)
    share = _power_share(gpu) if gpu is not None else None
    is_told = places[0].kind is Kind.CUDA
    if gpu is None or share is None or gpu.utilization_percent is None:
        return "asks its GPU again and again whether it is done; what the GPU does was not measured" if is_told else None
    if gpu.utilization_percent and share > SPIN_POWER_SHARE:
        return None
    power = f"GPU {gpu.index} at {gpu.utilization_percent:.0f} % with {gpu.power_watts:.0f} of {gpu.power_limit_watts:.0f} W"
    if is_told:
        return f"asks its GPU again and again whether it is done; {power}"
    return f"computes, or waits for its GPU: {power}" if gpu.utilization_percent >= SPIN_UTILIZATION_PERCENT else None


def on_gpu(place: Place) -> Place:
    """The same place, told as a wait for other ranks."""
    return msgspec.structs.replace(place, kind=Kind.COLLECTIVE, op=GPU_COLLECTIVE)


def _own_gpu(node: Node, process: Process) -> Gpu | None:
    """The one card that the process uses, by NVML's process list, else by the devices it may see; None when there are several or none."""
    gpus = node.gpus or ()
    own = [g for g in gpus if process.pid in g.pids]
    if not own and not any(g.pids for g in gpus):  # NVML shows no processes across pid namespaces
        visible = ((process.env_now or process.env).get("CUDA_VISIBLE_DEVICES") or "").split(",")
        own = [g for g in gpus if str(g.index) in visible or g.uuid in visible]
    return own[0] if len(own) == 1 else None


def _power_share(gpu: Gpu) -> float | None:
    return gpu.power_watts / gpu.power_limit_watts if gpu.power_watts is not None and gpu.power_limit_watts else None
