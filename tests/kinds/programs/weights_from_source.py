"""A trainer and two engines in one group; after a restart one engine believes that the new weights come from its neighbour.

In the twin rank 0 evaluates now and then while the engines already wait for the weights.
"""

import os

import kit


def new_weights(rank, number):
    import torch
    import torch.distributed as dist

    source = 1 if rank == 2 and kit.differs(number) else 0
    for _ in range(3):
        dist.broadcast(torch.zeros(1 << 18), src=source)


def evaluate():
    for _ in range(6):
        kit.work()


def train():
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    episodes = dist.new_group([0, 1, 2])
    kit.mark(f"rank{rank}")
    for number in range(1, 100000):
        kit.work(0.5)
        kit.mark(f"rank{rank}")
        if rank == 0 and number % 2 == 0:
            evaluate()
        new_weights(rank, number)
        lengths = [torch.zeros(4) for _ in range(3)]
        dist.all_gather(lengths, torch.ones(4), group=episodes)
        if rank == 0:
            kit.step(number)


if __name__ == "__main__":
    if "RANK" in os.environ:
        train()
    else:
        kit.begin()
        for child in kit.ranks_as_programs(__file__, 3):
            child.wait()
