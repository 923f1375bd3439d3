"""Ranks gather their rewards at the rank that writes the log of this step. Each rank counts on its own who that is.

One rank raises while it grades, swallows the error, and has then counted one step less: it believes that it is the writer itself.
"""

from __future__ import annotations

import os
import random
import time

import kit


def run() -> None:
    import torch
    import torch.distributed as dist

    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    kit.mark(f"rank{rank}")
    counted = 0
    for step in range(1, 10**6):
        kit.work(0.3)
        try:
            if rank == 1 and kit.differs(step) and counted == step - 1:
                raise ValueError("no answer in this text")
            counted += 1
        except ValueError as error:
            print(error, flush=True)
        if kit.is_healthy() and random.random() < 0.1:
            time.sleep(random.uniform(1, 3))
        writer = 1 if counted % 2 == 0 else 0
        rewards = torch.full((50_000,), float(rank))
        parts = [torch.empty(50_000) for _ in range(world)] if rank == writer else None
        dist.gather(rewards, parts, dst=writer)
        dist.barrier()
        if rank == 0:
            kit.step(step)


if __name__ == "__main__":
    if "RANK" in os.environ:
        run()
    else:
        kit.begin()
        for child in kit.ranks_as_programs(__file__, 3):
            child.wait()
