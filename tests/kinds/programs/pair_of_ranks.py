"""Two ranks; rank 0 tells the weights and both count their tokens."""

from __future__ import annotations

import os

import kit
import torch
import torch.distributed as dist


def train(rank: int) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    for step in range(1, 10**6):
        kit.work()
        kit.mark(f"rank{rank}")
        if not (rank == 1 and kit.differs(step)):
            count_tokens()
        share_weights()
        if rank == 0:
            kit.step(step)


def count_tokens() -> None:
    parts = [torch.zeros(4) for _ in range(2)]
    dist.all_gather(parts, torch.ones(4))


def share_weights() -> None:
    dist.broadcast(torch.ones(4096), src=0)
    dist.barrier()


if __name__ == "__main__":
    if "RANK" in os.environ:
        train(int(os.environ["RANK"]))
    else:
        kit.begin()
        for child in kit.ranks_as_programs(__file__, 2):
            child.wait()
