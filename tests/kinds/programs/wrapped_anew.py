"""Three ranks wrap a model anew after each change of it, which compares its parameters across them in C; once one rank waits for its logger first."""

from __future__ import annotations

import os
import threading

import kit
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def train(rank: int) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    logged = threading.Event()
    for step in range(1, 10**6):
        kit.work(0.5)
        kit.mark(f"rank{rank}")
        if rank == 2 and kit.differs(step):
            logged.wait()
        model = DistributedDataParallel(torch.nn.Linear(4, 4))
        model(torch.ones(1, 4)).sum().backward()
        if rank == 0:
            kit.step(step)


if __name__ == "__main__":
    if "RANK" in os.environ:
        train(int(os.environ["RANK"]))
    else:
        kit.begin()
        for child in kit.ranks_as_programs(__file__, 3):
            child.wait()
