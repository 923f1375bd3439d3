"""Three ranks train a model with batch statistics under DistributedDataParallel, which spreads the statistics of rank 0 in each forward pass.

One rank calls the module within: it neither receives the statistics nor gives its gradients, and is the first to sum up the loss.
"""

import os

import kit


def train():
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    inner = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 1))
    model = torch.nn.parallel.DistributedDataParallel(inner)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    kit.mark(f"rank{rank}")
    for number in range(1, 100000):
        kit.work(0.5)
        used = inner if rank == 2 and kit.differs(number) else model
        kit.mark(f"rank{rank}")
        loss = used(torch.randn(4, 8)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        total = loss.detach().clone().reshape(1)
        dist.all_reduce(total)
        if rank == 0:
            kit.step(number)


if __name__ == "__main__":
    if "RANK" in os.environ:
        train()
    else:
        kit.begin()
        for child in kit.ranks_as_programs(__file__, 3):
            child.wait()
