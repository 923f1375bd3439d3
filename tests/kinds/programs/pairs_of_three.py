"""Three experts average what they share in pairs, a group of torch for each pair; all go through the pairs in the same order.

Once each begins with the pair to its right: a waits for b, b for c and c for a. In the twin one of them computes for long.
"""

from __future__ import annotations

import kit
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

PAIRS = ((0, 1), (1, 2), (0, 2))
RIGHT_FIRST = {0: ((0, 1), (0, 2)), 1: ((1, 2), (0, 1)), 2: ((0, 2), (1, 2))}


def run(rank: int, port: int) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=3)
    groups = {pair: dist.new_group(list(pair)) for pair in PAIRS}
    for step in range(1, 10**6):
        kit.mark(f"expert{rank}")
        for _ in range(15 if rank == 1 and kit.is_late(step) else 1):
            kit.work(0.5)
        kit.mark(f"expert{rank}")
        for pair in RIGHT_FIRST[rank] if kit.differs(step) else PAIRS:
            if rank in pair:
                dist.all_reduce(torch.ones(128), group=groups[pair])
        if rank == 0:
            kit.step(step)


if __name__ == "__main__":
    kit.begin()
    mp.spawn(run, args=(kit.free_port(),), nprocs=3)
