"""Three actors of Ray share weights in a group of ray.util.collective; once one of them waits for a permission that nobody gives before it comes."""

from __future__ import annotations

import threading

import kit
import ray
import torch
from ray.util import collective


@ray.remote(num_cpus=0)
class Member:
    def __init__(self, rank: int) -> None:
        torch.set_num_threads(1)
        self.rank = rank
        self.allowed = threading.Event()

    def join(self) -> None:
        collective.init_collective_group(3, self.rank, backend="gloo", group_name="weights")

    def train(self) -> None:
        for step in range(1, 10**6):
            kit.work(0.5)
            kit.mark(f"member{self.rank}")
            if self.rank == 1 and kit.differs(step):
                self.allowed.wait()
            collective.allreduce(torch.ones(4), group_name="weights")
            if self.rank == 0:
                kit.step(step)


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    members = [Member.remote(rank) for rank in range(3)]
    ray.get([m.join.remote() for m in members])
    kit.mark("main")
    ray.get([m.train.remote() for m in members])


if __name__ == "__main__":
    main()
