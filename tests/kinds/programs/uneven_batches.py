"""Three ranks train a model with DDP on what their loader gives them, and meet for validation after the last batch."""

from __future__ import annotations

import os

import kit
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def train_epoch(model: torch.nn.Module, batches: int) -> None:
    for _ in range(batches):
        kit.work(0.2)
        loss = model(torch.randn(16, 32)).square().mean()
        loss.backward()


def validate() -> None:
    kit.work(0.2)
    dist.barrier()


def run(rank: int) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1)))
    for step in range(1, 10**6):
        kit.mark(f"rank{rank}")
        train_epoch(model, 2 if rank == 1 and kit.differs(step) else 3)
        kit.mark(f"rank{rank}")
        validate()
        if rank == 0:
            kit.step(step)


if __name__ == "__main__":
    if "RANK" in os.environ:
        run(int(os.environ["RANK"]))
    else:
        kit.begin()
        for child in kit.ranks_as_programs(__file__, 3):
            child.wait()
