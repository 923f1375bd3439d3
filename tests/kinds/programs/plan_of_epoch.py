"""Three ranks share plans as Python objects: all tell what they have, then rank 0 tells the plan."""

from __future__ import annotations

import os

import kit
import torch
import torch.distributed as dist


def train(rank: int) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    for step in range(1, 10**6):
        kit.work(0.6)
        kit.mark(f"rank{rank}")
        if not (rank == 1 and kit.differs(step)):
            states: list[object] = [None] * 3
            dist.all_gather_object(states, {"rank": rank, "step": step})
        plan = [{"step": step, "prompts": list(range(50))}] if rank == 0 else [None]
        dist.broadcast_object_list(plan, src=0)
        if rank == 0:
            kit.step(step)


if __name__ == "__main__":
    if "RANK" in os.environ:
        train(int(os.environ["RANK"]))
    else:
        kit.begin()
        for child in kit.ranks_as_programs(__file__, 3):
            child.wait()
