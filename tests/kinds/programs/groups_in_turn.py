"""Three ranks make a group for each of two models, in the order of the models in their configuration."""

from __future__ import annotations

import kit
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

MEMBERS = {"policy": [0, 1], "reward": [0, 1, 2]}


def make(order: list[str]) -> dict[str, dist.ProcessGroup]:
    return {name: dist.new_group(MEMBERS[name], group_desc=name) for name in order}


def run(rank: int, port: int) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=3)
    for step in range(1, 10**6):
        kit.work(0.6)
        kit.mark(f"rank{rank}")
        order = list(MEMBERS)
        if rank == 1 and kit.differs(step):
            order.reverse()
        groups = make(order)
        for name, members in MEMBERS.items():
            if rank in members:
                dist.all_reduce(torch.ones(8), group=groups[name])
                dist.destroy_process_group(groups[name])
        if rank == 0:
            kit.step(step)


if __name__ == "__main__":
    kit.begin()
    mp.spawn(run, args=(kit.free_port(),), nprocs=3)
