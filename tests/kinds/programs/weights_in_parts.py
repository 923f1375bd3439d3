"""Three ranks: the first sends its weights in parts to the other two with `isend`, and they receive as many parts as their own config says.

Rank 2 was started with a config of one part more and waits for it; the others meet in the next all_reduce. In the twin rank 0 packs each part slowly.
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
        kit.work(0.5)
        kit.mark(f"rank{rank}")
        if rank == 0:
            for _ in range(3):
                time.sleep(1.5 if kit.is_healthy() else 0.1)
                for other in (1, 2):
                    dist.isend(torch.ones(256), other).wait()
        else:
            for _ in range(4 if rank == 2 and kit.differs(step) else 3):
                dist.recv(torch.empty(256), 0)
        dist.all_reduce(torch.ones(1))
        if rank == 0:
            kit.step(step)


if __name__ == "__main__":
    if "RANK" in os.environ:
        train(int(os.environ["RANK"]))
    else:
        kit.begin()
        for child in kit.ranks_as_programs(__file__, 3):
            child.wait()
