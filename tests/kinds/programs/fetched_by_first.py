"""Three ranks meet at a barrier as soon as the first of them has fetched the weights, for which it starts a program that is no Python.

The program waits for a pipe that nobody writes. In the twin it takes long.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess

import kit


def fetch(step: int) -> None:
    script = "sleep 0.2; echo fetched"
    if kit.differs(step):
        script = f"read weights < {kit.fifo('mirror')}; echo fetched"
    elif kit.is_late(step):
        script = f"sleep {kit.LONG_S}; echo fetched"
    with subprocess.Popen(["/bin/sh", "-c", script], stdout=subprocess.PIPE) as fetcher:
        kit.mark("fetcher", fetcher.pid)
        assert fetcher.stdout is not None
        fetcher.stdout.read()


def train(rank: int, port: int) -> None:
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE="3")
    dist.init_process_group("gloo")
    for step in range(1, 10**6):
        kit.mark(f"rank{rank}")
        if rank == 0:
            fetch(step)
        dist.barrier()
        kit.work(0.3)
        dist.all_reduce(torch.ones(64))
        if rank == 0:
            kit.step(step)


if __name__ == "__main__":
    kit.begin()
    meeting = kit.free_port()
    spawn = multiprocessing.get_context("spawn")
    ranks = [spawn.Process(target=train, args=(rank, meeting)) for rank in range(3)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join()
