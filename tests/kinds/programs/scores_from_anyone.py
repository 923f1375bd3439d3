"""Rank 0 receives two scores of each other rank, from whoever sends next, and then tells all the new weights.

Rank 2 sends one score for its last batch, which is short, and waits for the weights. In the twin it evaluates for long before it sends.
"""

from __future__ import annotations

import os
import time

import kit
import torch
import torch.distributed as dist


def train(rank: int) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    for step in range(1, 10**6):
        kit.mark(f"rank{rank}")
        kit.work(0.2)
        if rank == 0:
            for _ in range(4):
                dist.recv(torch.zeros(8))
        else:
            if rank == 2 and kit.is_late(step):
                time.sleep(kit.LONG_S / 2)
                kit.in_c(8)
            for _ in range(1 if rank == 2 and kit.differs(step) else 2):
                dist.send(torch.ones(8), 0)
        dist.broadcast(torch.ones(4096), src=0)
        if rank == 0:
            kit.step(step)


if __name__ == "__main__":
    if "RANK" in os.environ:
        train(int(os.environ["RANK"]))
    else:
        kit.begin()
        for child in kit.ranks_as_programs(__file__, 3):
            child.wait()
