"""Two by two ranks, in plain processes: each averages over its row and its column, and the order of the two depends on the layer."""

from __future__ import annotations

import multiprocessing
import os

import kit


def train(rank: int, port: int) -> None:
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE="4")
    dist.init_process_group("gloo")
    rows = [dist.new_group(members) for members in ([0, 1], [2, 3])]
    columns = [dist.new_group(members) for members in ([0, 2], [1, 3])]
    mine = {"row": rows[rank // 2], "column": columns[rank % 2]}
    for step in range(1, 10**6):
        kit.work(0.5)
        kit.mark(f"rank{rank}")
        order = ("column", "row") if kit.differs(step) and rank in (1, 2) else ("row", "column")
        for axis in order:
            dist.all_reduce(torch.ones(2048), group=mine[axis])
        if rank == 0:
            kit.step(step)


if __name__ == "__main__":
    kit.begin()
    meeting = kit.free_port()
    spawn = multiprocessing.get_context("spawn")
    ranks = [spawn.Process(target=train, args=(rank, meeting)) for rank in range(4)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join()
