"""Two ranks exchange what they hold: the even one sends first, the odd one receives first."""

from __future__ import annotations

import multiprocessing

import kit


def exchange(rank: int, first: bool) -> None:
    import torch
    import torch.distributed as dist

    mine, other = torch.ones(1 << 10), torch.zeros(1 << 10)
    if first:
        dist.send(mine, dst=1 - rank)
        dist.recv(other, src=1 - rank)
    else:
        dist.recv(other, src=1 - rank)
        dist.send(mine, dst=1 - rank)


def run(rank: int, file: str) -> None:
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo", store=dist.FileStore(file, 2), rank=rank, world_size=2)
    for step in range(1, 10**6):
        kit.work(0.6)
        kit.mark(f"rank{rank}")
        exchange(rank, first=rank == 0 and not kit.differs(step))
        if rank == 0:
            kit.step(step)


if __name__ == "__main__":
    kit.begin()
    spawn = multiprocessing.get_context("spawn")
    ranks = [spawn.Process(target=run, args=(rank, str(kit.folder() / "store"))) for rank in range(2)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join()
