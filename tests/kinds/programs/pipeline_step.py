"""Four pipeline stages, started by torch's spawn: micro-batches go from stage to stage, then all reduce their metrics."""

from __future__ import annotations

import kit
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

STAGES = 4


def run_stage(rank: int, port: int) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=STAGES)
    kit.mark(f"rank{rank}")
    step = 0
    while True:
        step += 1
        micro_batches = 3 if rank == 0 and kit.differs(step) else 4
        for _ in range(micro_batches):
            forward(rank)
        kit.mark(f"rank{rank}")
        reduce_metrics(step)
        if rank == 0:
            kit.step(step)


def forward(rank: int) -> None:
    activations = torch.ones(256, 64)
    if rank > 0:
        dist.recv(activations, src=rank - 1)
    kit.work(0.3)
    if rank < STAGES - 1:
        dist.send(activations, dst=rank + 1)


def reduce_metrics(step: int) -> float:
    loss = torch.tensor([1.0 / step])
    dist.all_reduce(loss)
    return float(loss)


if __name__ == "__main__":
    kit.begin()
    mp.spawn(run_stage, args=(kit.free_port(),), nprocs=STAGES)
