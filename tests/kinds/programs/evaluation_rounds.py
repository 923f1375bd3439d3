"""Three of four ranks evaluate and meet under supervision; all four then tell each other how far they are."""

from __future__ import annotations

from datetime import timedelta

import kit
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

LONG = timedelta(hours=2)


def evaluate(rank: int, group: dist.ProcessGroup | None) -> None:
    kit.work(0.3)
    dist.monitored_barrier(group=group, timeout=LONG)


def run(rank: int, port: int) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=4, timeout=LONG)
    evaluators = dist.new_group([0, 1, 2], timeout=LONG)
    for step in range(1, 10**6):
        kit.work(0.4)
        kit.mark(f"rank{rank}")
        if rank < 3:
            evaluate(rank, None if rank == 1 and kit.differs(step) else evaluators)
        told: list[object] = [None] * 4
        dist.all_gather_object(told, step)
        if rank == 0:
            kit.step(step)


if __name__ == "__main__":
    kit.begin()
    mp.spawn(run, args=(kit.free_port(),), nprocs=4)
