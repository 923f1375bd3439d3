"""Two ranks train; a hook hands each gradient to a thread that keeps statistics, through a queue of two. The thread of one rank fails."""

from __future__ import annotations

import os
import queue
import threading

import kit
import torch
import torch.distributed as dist

GRADIENTS: queue.Queue[torch.Tensor] = queue.Queue(maxsize=2)


def statistics(rank: int) -> None:
    for number in range(1, 10**6):
        norm = float(GRADIENTS.get().norm())
        if rank == 1 and kit.differs(number // 4 + 1):
            raise ValueError(f"no bin for a norm of {norm}")


def run(rank: int) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    threading.Thread(target=statistics, args=(rank,), name="statistics", daemon=True).start()
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 1))
    for parameter in model.parameters():
        parameter.register_hook(lambda gradient: GRADIENTS.put(gradient.clone()))
    for step in range(1, 10**6):
        kit.mark(f"rank{rank}")
        kit.work(0.3)
        model(torch.randn(4, 8)).sum().backward()
        kit.mark(f"rank{rank}")
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
        if rank == 0:
            kit.step(step)


if __name__ == "__main__":
    if "RANK" in os.environ:
        run(int(os.environ["RANK"]))
    else:
        kit.begin()
        for child in kit.ranks_as_programs(__file__, 2):
            child.wait()
