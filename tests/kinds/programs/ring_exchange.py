"""Three ranks hand their borders around a ring, and now and then all meet to write a checkpoint."""

from __future__ import annotations

import os

import kit
import torch
import torch.distributed as dist

WORLD = 3


def train(rank: int) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    for step in range(1, 10**6):
        kit.work(0.5)
        kit.mark(f"rank{rank}")
        if not (rank == 2 and kit.differs(step)):
            exchange_borders(rank)
        write_checkpoint()
        if rank == 0:
            kit.step(step)


def exchange_borders(rank: int) -> None:
    right, left = (rank + 1) % WORLD, (rank - 1) % WORLD
    given, taken = torch.ones(128), torch.zeros(128)
    works = dist.batch_isend_irecv([dist.P2POp(dist.isend, given, right), dist.P2POp(dist.irecv, taken, left)])
    for work in works:
        work.wait()


def write_checkpoint() -> None:
    dist.barrier()


if __name__ == "__main__":
    if "RANK" in os.environ:
        train(int(os.environ["RANK"]))
    else:
        kit.begin()
        for child in kit.ranks_as_programs(__file__, WORLD):
            child.wait()
