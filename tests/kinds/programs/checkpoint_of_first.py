"""Three ranks train with DDP, and every third step is saved with torch's distributed checkpoint.

The save is wrapped in the usual "only the first rank", though all ranks have to take part; the others go on to the next step. In the twin all take
part and the disk is slow.
"""

from __future__ import annotations

import os
import time

import kit
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.nn.parallel import DistributedDataParallel


class SlowDisk(dcp.FileSystemWriter):
    def write_data(self, *args: object, **named: object) -> object:
        time.sleep(3.0)
        return super().write_data(*args, **named)


def train(rank: int) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    model = DistributedDataParallel(torch.nn.Linear(64, 64))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(1, 10**6):
        kit.work(0.5)
        model(torch.randn(8, 64)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 3 == 0:
            kit.mark(f"rank{rank}")
            if rank == 0 or not kit.differs(step):
                dcp.save({"model": model.state_dict()}, storage_writer=SlowDisk(kit.folder() / f"step{step}"))
        if rank == 0:
            kit.step(step)


if __name__ == "__main__":
    if "RANK" in os.environ:
        train(int(os.environ["RANK"]))
    else:
        kit.begin()
        for child in kit.ranks_as_programs(__file__, 3):
            child.wait()
