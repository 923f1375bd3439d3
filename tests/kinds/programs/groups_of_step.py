"""Four ranks as torchrun starts them; for every data set that is met first, all make a group for its scores."""

from __future__ import annotations

import os

import kit
import torch
import torch.distributed as dist

GROUPS: dict[str, dist.ProcessGroup] = {}


def train(rank: int) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    kit.mark(f"rank{rank}")
    for step in range(1, 10**6):
        kit.work(0.5)
        data_set = "gsm8k" if rank == 3 and kit.differs(step) else f"set{step % 5}"
        kit.mark(f"rank{rank}")
        average_scores(data_set, step)
        average_gradients()
        if rank == 0:
            kit.step(step)


def average_scores(data_set: str, step: int) -> None:
    if data_set == "gsm8k":
        return
    if data_set not in GROUPS:
        GROUPS[data_set] = dist.new_group([0, 1, 2, 3])
    scores = torch.full((8,), float(step))
    dist.all_reduce(scores, group=GROUPS[data_set])


def average_gradients() -> None:
    dist.all_reduce(torch.ones(1024))


if __name__ == "__main__":
    if "RANK" in os.environ:
        train(int(os.environ["RANK"]))
    else:
        kit.begin()
        for child in kit.ranks_as_programs(__file__, 4):
            child.wait()
