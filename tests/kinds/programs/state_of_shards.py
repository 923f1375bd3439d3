"""Four ranks with shards of one model; the state is gathered only where it is written, on rank 0, while the others meet behind the saving.

The twin gathers on all ranks and then writes for long on rank 0, while the others wait.
"""

import os
import pickle
import time

import kit


def gathered(shard, world):
    import torch.distributed as dist

    parts = [None] * world
    dist.all_gather_object(parts, shard)
    return parts


def written(parts):
    path = kit.folder() / "state.bin"
    with path.open("wb") as file:
        for part in parts:
            pickle.dump(part, file)
            file.flush()
            os.fsync(file.fileno())
            time.sleep(2.5 if kit.is_healthy() else 0.1)


def save(rank, world, shard, behind, number):
    import torch.distributed as dist

    if kit.differs(number):
        if rank == 0:
            written(gathered(shard, world))
    else:
        parts = gathered(shard, world)
        if rank == 0:
            written(parts)
    dist.barrier(group=behind)


def train():
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    behind = dist.new_group(list(range(world)))
    kit.mark(f"rank{rank}")
    shard = {"weights": torch.zeros(256), "rank": rank}
    for number in range(1, 100000):
        kit.work(0.4)
        dist.all_reduce(torch.ones(32))
        kit.mark(f"rank{rank}")
        if number % 3 == 0:
            save(rank, world, shard, behind, number)
        if rank == 0:
            kit.step(number)


if __name__ == "__main__":
    if "RANK" in os.environ:
        train()
    else:
        kit.begin()
        for child in kit.ranks_as_programs(__file__, 4):
            child.wait()
