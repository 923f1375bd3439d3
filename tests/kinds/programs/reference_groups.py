"""Two ranks; every few steps both make a new group for the reference model. Rank 0 makes one more, for itself, as it believes."""

from __future__ import annotations

import kit
import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def run(rank: int, port: int) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    for step in range(1, 10**6):
        kit.work()
        kit.mark(f"rank{rank}")
        if rank == 0 and kit.differs(step):
            dist.new_group([0], group_desc="logger")
        group = dist.new_group([0, 1], group_desc=f"reference_{step}")
        dist.all_reduce(torch.ones(64), group=group)
        dist.destroy_process_group(group)
        if rank == 0:
            kit.step(step)


if __name__ == "__main__":
    kit.begin()
    mp.spawn(run, args=(kit.free_port(),), nprocs=2)
