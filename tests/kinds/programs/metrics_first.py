"""Three ranks with two groups of the same members, one for gradients and one for metrics, both used in every step."""

from __future__ import annotations

import kit
import torch
import torch.distributed as dist
import torch.multiprocessing as mp


class Trainer:
    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.gradients = dist.new_group([0, 1, 2], group_desc="gradients")
        self.metrics = dist.new_group([0, 1, 2], group_desc="metrics")

    def reduce_gradients(self) -> None:
        dist.all_reduce(torch.ones(4096), group=self.gradients)

    def meet_for_metrics(self) -> None:
        dist.barrier(group=self.metrics)

    def step(self, number: int) -> None:
        if self.rank == 1 and kit.differs(number):
            self.meet_for_metrics()
            self.reduce_gradients()
        else:
            self.reduce_gradients()
            self.meet_for_metrics()


def run(rank: int, file: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=3)
    trainer = Trainer(rank)
    for step in range(1, 10**6):
        kit.work(0.5)
        kit.mark(f"rank{rank}")
        trainer.step(step)
        if rank == 0:
            kit.step(step)


if __name__ == "__main__":
    kit.begin()
    mp.start_processes(run, args=(str(kit.folder() / "meeting"),), nprocs=3, start_method="fork")
