"""Three ranks, actors of Ray, train and evaluate a model in shards (FSDP2): each forward pass gathers the shards of all.

Once rank 1 has a batch less to evaluate than the others, and goes on to the sum of the metrics, in a group of their own; the others gather shards
for their last batch. In the twin a batch of rank 1 takes half a minute.
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
        self.metrics = dist.new_group([0, 1, 2])
        self.model = torch.nn.Sequential(torch.nn.Linear(48, 96), torch.nn.ReLU(), torch.nn.Linear(96, 48))
        for layer in (self.model[0], self.model[2]):
            fully_shard(layer)
        fully_shard(self.model)

    def update(self, number: int) -> int:
        kit.work(0.2)
        self.model(torch.randn(6, 48)).square().mean().backward()
        self.model.zero_grad()
        return number

    def evaluate(self, number: int) -> float:
        total = torch.zeros(1)
        with torch.no_grad():
            for _ in range(2 if self.rank == 1 and kit.differs(number) else 3):
                kit.work(0.1)
                if self.rank == 1 and kit.is_late(number):
                    time.sleep(kit.LONG_S)
                total += self.model(torch.randn(6, 48)).mean()
        dist.all_reduce(total, group=self.metrics)
        return float(total)


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    ranks = [Trainer.remote(rank) for rank in range(3)]
    port = free_port()
    ray.get([rank.join.remote(port) for rank in ranks])
    for number in range(1, 10**6):
        ray.get([rank.update.remote(number) for rank in ranks])
        ray.get([rank.evaluate.remote(number) for rank in ranks])
        kit.step(number)


if __name__ == "__main__":
    main()
