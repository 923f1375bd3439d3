"""Two ranks share a group for weights and one for data."""

from __future__ import annotations

import os

import kit
import torch
import torch.distributed as dist


class Worker:
    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.sync = dist.new_group([0, 1], group_desc="sync")
        self.data = dist.new_group([0, 1], group_desc="data")

    def take_weights(self) -> None:
        for _ in range(2):
            dist.broadcast(torch.ones(1 << 12), src=1, group=self.sync)

    def take_data(self) -> None:
        parts = [torch.zeros(64) for _ in range(2)]
        dist.all_gather(parts, torch.ones(64), group=self.data)

    def run(self) -> None:
        for step in range(1, 10**6):
            kit.work(0.6)
            kit.mark(f"rank{self.rank}")
            calls = [self.take_weights, self.take_data]
            if self.rank == 1 and kit.differs(step):
                calls.reverse()
            for call in calls:
                call()
            if self.rank == 0:
                kit.step(step)


if __name__ == "__main__":
    if "RANK" in os.environ:
        torch.set_num_threads(1)
        dist.init_process_group("gloo")
        Worker(int(os.environ["RANK"])).run()
    else:
        kit.begin()
        for child in kit.ranks_as_programs(__file__, 2):
            child.wait()
