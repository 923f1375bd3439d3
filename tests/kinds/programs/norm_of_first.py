"""Three ranks, actors of Ray, train a model in shards (FSDP2) and clip its gradients. The norm is a tensor in shards as well.

Once rank 0 alone has the whole norm made for the log, for which all have to take part; the others gather shards for their next batch. In the twin
rank 0 writes a log for half a minute.
"""

from __future__ import annotations

import time

import kit
import ray
import torch
import torch.distributed as dist
from ports import free_port
from torch.distributed.fsdp import fully_shard


@ray.remote(num_cpus=0)
class Trainer:
    def __init__(self, rank: int) -> None:
        kit.mark(f"rank{rank}")
        self.rank = rank

    def join(self, port: int) -> None:
        torch.set_num_threads(1)
        dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=self.rank, world_size=3)
        self.model = torch.nn.Sequential(torch.nn.Linear(48, 96), torch.nn.ReLU(), torch.nn.Linear(96, 48))
        for layer in (self.model[0], self.model[2]):
            fully_shard(layer)
        fully_shard(self.model)

    def update(self, number: int) -> int:
        for _ in range(2):
            kit.work(0.2)
            self.model(torch.randn(6, 48)).square().mean().backward()
            norm = torch.nn.utils.get_total_norm([p.grad for p in self.model.parameters()])
            if self.rank == 0 or not kit.differs(number):
                norm.full_tensor()
            if self.rank == 0 and kit.is_late(number):
                time.sleep(kit.LONG_S)
            self.model.zero_grad()
        return number


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    ranks = [Trainer.remote(rank) for rank in range(3)]
    port = free_port()
    ray.get([rank.join.remote(port) for rank in ranks])
    for number in range(1, 10**6):
        ray.get([rank.update.remote(number) for rank in ranks])
        kit.step(number)


if __name__ == "__main__":
    main()
