"""Two trainers and two engines in one world: trainers average their gradients, then rank 0 sends the weights to the engines."""

from __future__ import annotations

import os

import kit
import torch
import torch.distributed as dist


class Rank:
    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.trainers = dist.new_group([0, 1], group_desc="trainers")
        self.engines = dist.new_group([2, 3], group_desc="engines")
        self.weights = dist.new_group([0, 2, 3], group_desc="weights")

    def train(self) -> None:
        kit.work(0.4)
        dist.all_reduce(torch.ones(512), group=self.trainers)

    def generate(self, turns: int) -> None:
        for _ in range(turns):
            kit.work(0.1)
            parts = [torch.zeros(64) for _ in range(2)]
            dist.all_gather(parts, torch.ones(64), group=self.engines)

    def update_weights(self) -> None:
        for _ in range(3):
            dist.broadcast(torch.ones(1024), src=0, group=self.weights)
        dist.barrier(group=self.weights)

    def run(self) -> None:
        for step in range(1, 10**6):
            kit.mark(f"rank{self.rank}")
            if self.rank < 2:
                self.train()
            else:
                self.generate(4 if self.rank == 3 and kit.differs(step) else 3)
            kit.mark(f"rank{self.rank}")
            if self.rank != 1:
                self.update_weights()
            if self.rank == 0:
                kit.step(step)


if __name__ == "__main__":
    if "RANK" in os.environ:
        torch.set_num_threads(1)
        dist.init_process_group("gloo")
        Rank(int(os.environ["RANK"])).run()
    else:
        kit.begin()
        for child in kit.ranks_as_programs(__file__, 4):
            child.wait()
