"""RRD809 /dev/shm is smaller than the object store

Story
    Ray keeps objects in /dev/shm, 30 % of the memory by default. Where it is smaller (64 MB in a container) Ray uses a slow disk folder instead,
    and NCCL's and DataLoader's shared memory have no room.

Evidence
    Size of /dev/shm and memory of this node.

Remedy
    A larger /dev/shm, or a smaller object store.

Not this when
    The object store's size is given and fits.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.doctor.answers import gib, ok, unknown, warn
from ray_rl_debug.model.health import Health, Result

ID = "RRD809"
NAME = "/dev/shm is smaller than the object store"
CHECK = "shm.size"
SHARE = 0.3


def examine(health: Health) -> Iterator[Result]:
    for node in health.nodes:
        memory = node.memory
        allowed = min((n for n in (memory.total_bytes, memory.limit_bytes) if n is not None), default=None)
        free = memory.shm_free_bytes if node.plan.is_preflight else memory.shm_total_bytes
        if allowed is None or free is None:
            yield unknown(node.name, "/dev/shm was not read")
            continue
        wanted = int(SHARE * allowed)
        text, threshold = f"{gib(free)} {'free' if node.plan.is_preflight else 'in all'}", f"{gib(wanted)} (30 % of memory)"
        if free < wanted:
            consequence = "Ray's object store goes to a disk folder and is slow; NCCL's shared memory may fail"
            yield warn(
                node.name, text, threshold, consequence, f"--shm-size={wanted >> 30 or 1}g, or ray start --object-store-memory={int(0.9 * free)}"
            )
        else:
            yield ok(node.name, text, threshold)
