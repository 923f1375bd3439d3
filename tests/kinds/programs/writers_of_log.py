"""Three ranks; two of them write the log and meet before they do, all three meet at the end of a step."""

from __future__ import annotations

import os

import kit
import torch
import torch.distributed as dist


def train(rank: int) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    writers, everybody = dist.new_group([0, 1]), dist.new_group([0, 1, 2])
    for step in range(1, 10**6):
        kit.work(0.5)
        kit.mark(f"rank{rank}")
        if rank < 2:
            write_log(step, everybody if rank == 1 and kit.differs(step) else writers)
        dist.all_reduce(torch.ones(16))
        if rank == 0:
            kit.step(step)


def write_log(step: int, group: dist.ProcessGroup) -> None:
    dist.barrier(group=group)
    with (kit.folder() / f"log_{os.environ['RANK']}").open("a") as log:
        log.write(f"{step}\n")


if __name__ == "__main__":
    if "RANK" in os.environ:
        train(int(os.environ["RANK"]))
    else:
        kit.begin()
        for child in kit.ranks_as_programs(__file__, 3):
            child.wait()
