"""RRD824 a GPU is in use before the job starts

Story
    A process that survived the last job still holds GPU memory: the engine then has too little for its cache, or runs out of memory at once.

Evidence
    GPU memory in use and the processes that NVML lists.

Remedy
    End the process, or have the node drained.

Not this when
    The job runs already.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.doctor.answers import gib, ok, warn
from ray_rl_debug.model.health import Health, Result

ID = "RRD824"
NAME = "a GPU is in use before the job starts"
CHECK = "gpu.busy"
FREE_BYTES = 1 << 30


def examine(health: Health) -> Iterator[Result]:
    for node in health.nodes:
        devices = node.gpus.devices if node.gpus is not None and node.plan.is_preflight else None
        if not devices:
            continue
        busy = [g for g in devices if (g.memory_used_bytes or 0) > FREE_BYTES]
        if not busy:
            yield ok(node.name, f"{len(devices)} GPUs are free", f"less than {gib(FREE_BYTES)} in use")
        for gpu in busy:
            pids = " ".join(map(str, gpu.pids))
            text = f"GPU {gpu.index}: {gib(gpu.memory_used_bytes or 0)} in use" + (f" by {pids}" if pids else "")
            remedy = f"if it is yours: kill {pids}" if pids else "nvidia-smi; fuser -v /dev/nvidia*"
            yield warn(node.name, text, f"less than {gib(FREE_BYTES)}", "too little memory for the model or its cache", remedy)
