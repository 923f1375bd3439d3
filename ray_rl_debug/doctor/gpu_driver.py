"""RRD825 the GPU driver does not answer

Story
    NVML says nothing, or that driver and library differ: after an update without a reboot, with an Xid, or when a GPU fell off the bus. CUDA fails
    or hangs on such a node.

Evidence
    NVML's answer within a deadline, and the driver's version on each node.

Remedy
    Look at the kernel's log; reboot or drain the node.

Not this when
    The node has no NVIDIA device.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.doctor.answers import fail, ok, unknown, warn
from ray_rl_debug.model.health import Health, Result

ID = "RRD825"
NAME = "the GPU driver does not answer"
CHECK = "gpu.driver"


def examine(health: Health) -> Iterator[Result]:
    for node in health.nodes:
        gpus = node.gpus
        if gpus is None:
            yield unknown(node.name, "GPUs were not asked for")
        elif gpus.error is not None and "binding" in gpus.error:
            yield warn(node.name, gpus.error, "NVML answers", "reports have no GPU facts", "pip install nvidia-ml-py")
        elif gpus.error is not None:
            yield fail(node.name, gpus.error, "NVML answers", "CUDA fails or hangs on this node", "nvidia-smi -q; dmesg | grep -i -e xid -e nvrm")
        elif gpus.devices:
            yield ok(node.name, f"driver {gpus.driver or '?'}, {len(gpus.devices)} x {gpus.devices[0].name}")
        else:
            yield ok(node.name, "no NVIDIA device")
    drivers = {n.name: n.gpus.driver for n in health.nodes if n.gpus is not None and n.gpus.driver is not None}
    if len(set(drivers.values())) > 1:
        text = ", ".join(f"{n}: {d}" for n, d in sorted(drivers.items())[:6])
        yield warn(None, f"drivers differ: {text}", "equal", "one CUDA build may not run on all nodes", "drain the odd node and update it")
