"""A controller sends two kinds of calls to a group of three actors, ranks of one world: scores from one thread, updates from another.

A lock keeps the order of both the same for all ranks. Once a thread sends to the last rank after it gave the lock back, and the other thread sends
between: that rank meets the others in another order. In the twin the order holds, and one update is long.
"""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import kit
import ray

WORLD = 3


@ray.remote(num_cpus=0)
class Worker:
    def __init__(self, rank: int, port: int) -> None:
        import torch.distributed as dist

        kit.mark(f"rank{rank}")
        os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        self.rank = rank
        dist.init_process_group("gloo", rank=rank, world_size=WORLD)

    def compute_scores(self, step: int) -> float:
        import torch
        import torch.distributed as dist

        kit.work(0.2)
        parts = [torch.zeros(4) for _ in range(WORLD)]
        dist.all_gather(parts, torch.full((4,), float(step)))
        return float(parts[0][0])

    def update_policy(self, step: int) -> float:
        import torch
        import torch.distributed as dist

        kit.work(0.2)
        if self.rank == 1 and kit.is_late(step):
            time.sleep(kit.LONG_S)
        gradients = torch.ones(64)
        dist.all_reduce(gradients)
        return float(gradients[0])


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    port = kit.free_port()
    group = [Worker.remote(rank, port) for rank in range(WORLD)]
    order, has_sent = threading.Lock(), threading.Event()

    def scored(step: int) -> list[Any]:
        with order:
            calls = [one.compute_scores.remote(step) for one in group[:-1]]
            if not kit.differs(step):
                return list(ray.get([*calls, group[-1].compute_scores.remote(step)]))
        has_sent.wait(5)
        return list(ray.get([*calls, group[-1].compute_scores.remote(step)]))

    def updated(step: int) -> list[Any]:
        with order:
            calls = [one.update_policy.remote(step) for one in group]
            has_sent.set()
        return list(ray.get(calls))

    with ThreadPoolExecutor(2) as threads:
        for step in range(1, 10**6):
            kit.mark("main")
            has_sent.clear()
            both = threads.submit(scored, step), threads.submit(updated, step)
            for one in both:
                one.result()
            kit.step(step)


if __name__ == "__main__":
    main()
