"""Three workers share one device by a lock between processes; one of them may end while it has it."""

from __future__ import annotations

import multiprocessing
import os
from multiprocessing.synchronize import Lock

import kit


def use(name: str, device: Lock) -> None:
    for step in range(1, 10**6):
        kit.mark(name)
        with device:
            if name == "worker1" and kit.differs(step):
                os._exit(9)
            kit.work(0.3)
        if name == "worker0":
            kit.step(step)
        kit.work(0.1)


if __name__ == "__main__":
    kit.begin()
    spawn = multiprocessing.get_context("spawn")
    device = spawn.Lock()
    workers = [spawn.Process(target=use, args=(f"worker{n}", device)) for n in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
