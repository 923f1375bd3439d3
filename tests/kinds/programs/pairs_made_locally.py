"""Three ranks make a group for each pair, in which only its two members take part, and average in all pairs; they do so anew for each stage.

In the usual order all go through the pairs alike. Once each begins with its next neighbour: each waits for the other member of another pair. In the
twin one rank loads for half a minute before it makes its groups.
"""

from __future__ import annotations

import multiprocessing
import time

import kit


def run(rank: int, file: str) -> None:
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo", store=dist.FileStore(file, 3), rank=rank, world_size=3)
    for number in range(1, 10**6):
        kit.work(0.5)
        if rank == 1 and kit.is_late(number):
            time.sleep(kit.LONG_S)
        pairs = [(0, 1), (1, 2), (0, 2)]
        mine = [pair for pair in pairs if rank in pair]
        if kit.differs(number):
            first = tuple(sorted((rank, (rank + 1) % 3)))
            mine.sort(key=lambda pair: pair != first)
        kit.mark(f"rank{rank}")
        made = {pair: dist.new_group(list(pair), use_local_synchronization=True) for pair in mine}
        for pair in sorted(made):
            dist.all_reduce(torch.ones(4), group=made[pair])
        for group in made.values():
            dist.destroy_process_group(group)
        dist.all_reduce(torch.ones(1))
        if rank == 0:
            kit.step(number)


if __name__ == "__main__":
    kit.begin()
    spawn = multiprocessing.get_context("spawn")
    ranks = [spawn.Process(target=run, args=(rank, str(kit.folder() / "store"))) for rank in range(3)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join()
