"""Three ranks hand activations round in batches of sends and receives; every fourth step they make a group for the evaluation.

The middle rank counts one micro-batch less and is the first to make the group, while the others wait for what it leaves out. In the twin it is slow.
"""

from __future__ import annotations

import os

import kit
import torch
import torch.distributed as dist


def exchange(rank: int, scale: float) -> None:
    kit.work(scale)
    ahead, behind = (rank + 1) % 3, (rank - 1) % 3
    works = dist.batch_isend_irecv([dist.P2POp(dist.isend, torch.ones(64, 64), ahead), dist.P2POp(dist.irecv, torch.zeros(64, 64), behind)])
    for work in works:
        work.wait()


def train(rank: int) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    for step in range(1, 10**6):
        kit.mark(f"rank{rank}")
        for _ in range(2 if rank == 1 and kit.differs(step) else 3):
            exchange(rank, 6.0 if rank == 1 and kit.is_late(step) else 0.3)
        if step % 4 == 3:
            evaluation = dist.new_group([0, 1, 2], group_desc="evaluation")
            dist.barrier(group=evaluation)
            dist.destroy_process_group(evaluation)
        if rank == 0:
            kit.step(step)


if __name__ == "__main__":
    if "RANK" in os.environ:
        train(int(os.environ["RANK"]))
    else:
        kit.begin()
        for child in kit.ranks_as_programs(__file__, 3):
            child.wait()
