"""Three ranks, actors of Ray, wrap a model anew for each stage in DistributedDataParallel, which compares and spreads the weights of all ranks.

Once rank 2 believes from its own settings that there is no critic, and goes on to the sum of the metrics. In the twin it loads for half a minute.
"""

from __future__ import annotations

import time

import kit
import ray
import torch
import torch.distributed as dist
from ports import free_port


@ray.remote(num_cpus=0)
class Trainer:
    def __init__(self, rank: int) -> None:
        kit.mark(f"rank{rank}")
        self.rank = rank

    def join(self, port: int) -> None:
        torch.set_num_threads(1)
        dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=self.rank, world_size=3)

    def stage(self, number: int) -> float:
        kit.work(0.3)
        if self.rank == 2 and kit.is_late(number):
            time.sleep(kit.LONG_S)
        if not (self.rank == 2 and kit.differs(number)):
            critic = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(32, 32))
            critic(torch.randn(4, 32)).square().mean().backward()
        total = torch.ones(1)
        dist.all_reduce(total)
        return float(total)


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    ranks = [Trainer.remote(rank) for rank in range(3)]
    port = free_port()
    ray.get([rank.join.remote(port) for rank in ranks])
    for number in range(1, 10**6):
        ray.get([rank.stage.remote(number) for rank in ranks])
        kit.step(number)


if __name__ == "__main__":
    main()
