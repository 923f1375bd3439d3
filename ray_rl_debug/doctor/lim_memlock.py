"""RRD808 locked memory is limited beside InfiniBand

Story
    RDMA pins memory. With a small limit NCCL fails with "unhandled system error", or falls back to slow sockets.

Evidence
    RLIMIT_MEMLOCK, and active InfiniBand ports.

Remedy
    Unlimited locked memory for jobs.

Not this when
    There is no InfiniBand.
"""

from __future__ import annotations

from collections.abc import Iterator

from ray_rl_debug.doctor.answers import gib, ok, warn
from ray_rl_debug.model.health import Health, Result

ID = "RRD808"
NAME = "locked memory is limited beside InfiniBand"
CHECK = "lim.memlock"


def examine(health: Health) -> Iterator[Result]:
    for node in health.nodes:
        limit = node.limits.locked_memory
        if limit is None or node.network is None or not node.network.infiniband:
            continue
        if limit.soft is None:
            yield ok(node.name, "unlimited", "unlimited")
        else:
            remedy = "ulimit -l unlimited" if limit.hard is None else "ask the site for LimitMEMLOCK=infinity in slurmd.service"
            yield warn(node.name, f"ulimit -l: {gib(limit.soft)}", "unlimited", "NCCL over InfiniBand fails or is slow", remedy)
