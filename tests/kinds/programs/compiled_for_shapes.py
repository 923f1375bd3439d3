"""Four ranks add up their gradients; one meets a new shape and compiles for it, under the lock of the folder of kernels.

Its compiler takes the lock of the folder once more, over another descriptor. In the twin it compiles for long, in one call.
"""

from __future__ import annotations

import fcntl
import multiprocessing
import os

import kit


def compiled(step: int) -> None:
    with open(kit.folder() / "kernels.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if kit.differs(step):
            kit.mark("rank2")
            with open(kit.folder() / "kernels.lock", "w") as once_more:
                fcntl.flock(once_more, fcntl.LOCK_EX)
        kit.in_c(kit.LONG_S if kit.is_late(step) else 0.2)


def train(rank: int, port: int) -> None:
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE="4")
    dist.init_process_group("gloo")
    for step in range(1, 10**6):
        kit.mark(f"rank{rank}")
        kit.work(0.2)
        if rank == 2:
            compiled(step)
        dist.all_reduce(torch.ones(1024))
        if rank == 0:
            kit.step(step)


if __name__ == "__main__":
    kit.begin()
    meeting = kit.free_port()
    spawn = multiprocessing.get_context("spawn")
    ranks = [spawn.Process(target=train, args=(rank, meeting)) for rank in range(4)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join()
