"""Rank 0 gives every rank its prompts as objects and collects their answers as objects."""

from __future__ import annotations

import kit
import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def run(rank: int, port: int) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=3)
    for step in range(1, 10**6):
        mine: list[object] = [None]
        dist.scatter_object_list(mine, [{"prompts": [step] * 10} for _ in range(3)] if rank == 0 else None, src=0)
        kit.work(0.5)
        kit.mark(f"rank{rank}")
        if rank == 2 and kit.differs(step):
            continue
        answers: list[object] | None = [None] * 3 if rank == 0 else None
        dist.gather_object({"rank": rank, "answers": mine}, answers, dst=0)
        if rank == 0:
            kit.step(step)


if __name__ == "__main__":
    kit.begin()
    mp.spawn(run, args=(kit.free_port(),), nprocs=3)
