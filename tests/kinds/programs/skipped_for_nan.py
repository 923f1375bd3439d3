"""Three data-parallel ranks; one drops its step because its loss is not a number and is the first to fetch new weights.

The gradients go through a group of their own, as in Megatron, the weights through the default group. The twin compiles for long in its first step, on
one rank alone, while the others wait for its gradients.
"""

import os
import time

import kit


def gradients(group):
    import torch
    import torch.distributed as dist

    parts = [torch.ones(64), torch.ones(8)]
    for part in parts:
        dist.all_reduce(part, group=group)
    return parts


def compiled(rank):
    if rank == 2 and kit.is_healthy():
        until = time.monotonic() + 12
        while time.monotonic() < until:
            sum(i * i for i in range(2000))


def train():
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    data_parallel = dist.new_group([0, 1, 2])
    kit.mark(f"rank{rank}")
    weights = torch.zeros(128)
    for number in range(1, 100000):
        kit.work(0.5)
        if number == 3:
            compiled(rank)
        loss = float("nan") if rank == 1 and kit.differs(number) else 0.5
        if loss == loss:
            gradients(data_parallel)
        kit.mark(f"rank{rank}")
        dist.broadcast(weights, src=0)
        if rank == 0:
            kit.step(number)


if __name__ == "__main__":
    if "RANK" in os.environ:
        train()
    else:
        kit.begin()
        for child in kit.ranks_as_programs(__file__, 3):
            child.wait()
