"""Three stages of a pipeline hand micro-batches on, each under its number as the tag; then all add up their metrics.

The second stage takes them in the other order from its own configuration: both sides wait under different tags.
"""

from __future__ import annotations

import multiprocessing

import kit

WORLD, MICRO = 3, 2


def run(rank: int, file: str) -> None:
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=WORLD)
    batch = torch.zeros(4096)
    for step in range(1, 10**6):
        kit.mark(f"stage{rank}")
        order = list(range(1, MICRO + 1))
        if rank == 1 and kit.differs(step):
            order.reverse()
        for number in order:
            if rank > 0:
                dist.recv(batch, src=rank - 1, tag=number)
            kit.work(0.2)
            if rank < WORLD - 1:
                dist.send(batch, dst=rank + 1, tag=number)
        dist.all_reduce(torch.ones(16))
        if rank == 0:
            kit.step(step)


if __name__ == "__main__":
    kit.begin()
    spawn = multiprocessing.get_context("spawn")
    stages = [spawn.Process(target=run, args=(rank, str(kit.folder() / "meeting"))) for rank in range(WORLD)]
    for process in stages:
        process.start()
    for process in stages:
        process.join()
