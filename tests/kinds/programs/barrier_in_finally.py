"""Four ranks train; whoever meets an error in a step logs it and meets the others at a barrier before it goes on.

Only one rank meets the error, so it stands at the barrier while the others average their gradients. In the twin the rank only takes
long.
"""

from __future__ import annotations

import os
import time

import kit
import torch
import torch.distributed as dist


def reward(rank: int, step: int) -> torch.Tensor:
    if rank == 2 and kit.is_healthy() and step % 2:
        time.sleep(4.0)
    if rank == 2 and kit.differs(step):
        raise RuntimeError("CUDA out of memory")
    return torch.ones(8)


def train(rank: int) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    for step in range(1, 10**6):
        kit.work(0.5)
        kit.mark(f"rank{rank}")
        try:
            gradient = reward(rank, step)
            dist.all_reduce(gradient)
        except RuntimeError as error:
            print(error, flush=True)
            dist.barrier()
        if rank == 0:
            kit.step(step)


if __name__ == "__main__":
    if "RANK" in os.environ:
        train(int(os.environ["RANK"]))
    else:
        kit.begin()
        for child in kit.ranks_as_programs(__file__, 4):
            child.wait()
