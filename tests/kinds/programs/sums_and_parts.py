"""Two ranks: rank 0 takes the sum of both, then the parts of both."""

from __future__ import annotations

import kit
import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def take_sum(rank: int) -> None:
    dist.reduce(torch.ones(256), dst=0)


def take_parts(rank: int) -> None:
    dist.gather(torch.ones(256), [torch.zeros(256) for _ in range(2)] if rank == 0 else None, dst=0)
    dist.barrier()


def run(rank: int, file: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=2)
    for step in range(1, 10**6):
        kit.work(0.7)
        kit.mark(f"rank{rank}")
        if not (rank == 1 and kit.differs(step)):
            take_sum(rank)
        take_parts(rank)
        if rank == 0:
            kit.step(step)


if __name__ == "__main__":
    kit.begin()
    mp.start_processes(run, args=(str(kit.folder() / "meeting"),), nprocs=2, start_method="fork")
