"""Four ranks; every few steps the first two log together, in a group that is made for it."""

from __future__ import annotations

import os

import kit
import torch
import torch.distributed as dist


def logging_group(rank: int, step: int) -> dist.ProcessGroup | None:
    if rank == 1 and kit.differs(step):
        return None
    group = dist.new_group([0, 1])
    return group if rank < 2 else None


def train(rank: int) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    for step in range(1, 10**6):
        kit.work(0.5)
        kit.mark(f"rank{rank}")
        group = logging_group(rank, step)
        if group is not None:
            dist.all_reduce(torch.ones(4), group=group)
            dist.destroy_process_group(group)
        dist.reduce_scatter_tensor(torch.zeros(16), torch.ones(64))
        if rank == 0:
            kit.step(step)


if __name__ == "__main__":
    if "RANK" in os.environ:
        train(int(os.environ["RANK"]))
    else:
        kit.begin()
        for child in kit.ranks_as_programs(__file__, 4):
            child.wait()
