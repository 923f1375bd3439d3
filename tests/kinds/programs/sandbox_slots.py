"""Four workers share two slots of a sandbox, by a semaphore between processes; two of them keep a slot while they run a program."""

from __future__ import annotations

import multiprocessing
from multiprocessing.synchronize import Semaphore
from pathlib import Path

import kit


def run_tests(name: str, slots: Semaphore, step_of: bool) -> None:
    for step in range(1, 10**6):
        with slots:
            kit.mark(name)
            if name in ("worker0", "worker1") and kit.differs(step):
                read_output(kit.fifo("output"))
            kit.work(0.5)
        if step_of:
            kit.step(step)
        kit.mark(name)


def read_output(path: str) -> str:
    return Path(path).read_text()


if __name__ == "__main__":
    kit.begin()
    slots = multiprocessing.Semaphore(2)
    workers = [multiprocessing.Process(target=run_tests, args=(f"worker{n}", slots, n == 0)) for n in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
