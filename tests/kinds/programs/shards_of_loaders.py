"""Two ranks load their batches in a process each, which puts them into a short queue; the loaders read a shard that they share under a file lock.

Once a loader keeps the lock while it puts: its queue is full, as its rank waits in a collective for the other one, whose loader wants the lock. In
the twin the lock is given back first, and a shard is long to read.
"""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import time
from typing import Any

import kit

EACH = 3


def load(rank: int, batches: Any) -> None:
    kit.mark(f"loader{rank}")
    for step in range(1, 10**6):
        for n in range(EACH):
            with (kit.folder() / "shard.lock").open("w") as lock:
                if rank == 1 and not kit.is_healthy() and step >= kit.STEP:
                    time.sleep(3)
                fcntl.flock(lock, fcntl.LOCK_EX)
                kit.work(0.05)
                if rank == 1 and n == 1 and kit.is_late(step):
                    time.sleep(kit.LONG_S)
                if rank == 0 and kit.differs(step):
                    for more in range(10**6):
                        batches.put((step, more))
            batches.put((step, n))


def rank() -> None:
    import torch
    import torch.distributed as dist

    me = int(os.environ["RANK"])
    kit.mark(f"rank{me}")
    dist.init_process_group("gloo")
    batches = multiprocessing.get_context("fork").Queue(maxsize=2)
    multiprocessing.get_context("fork").Process(target=load, args=(me, batches), daemon=True).start()
    for step in range(1, 10**6):
        for _ in range(EACH):
            batches.get()
            kit.work(0.05)
            dist.all_reduce(torch.ones(16))
        if me == 0:
            kit.step(step)


def main() -> None:
    kit.begin()
    for one in kit.ranks_as_programs(__file__, 2):
        one.wait()


if __name__ == "__main__":
    rank() if "RANK" in os.environ else main()
