"""A loader hands samples to a packer, the packer hands batches to the trainer; both queues are short."""

from __future__ import annotations

import multiprocessing
import os
from multiprocessing.queues import Queue

import kit


def load(samples: Queue[int]) -> None:
    for n in range(10**6):
        kit.mark("loader")
        kit.work(0.1)
        samples.put(n)


def pack(samples: Queue[int], batches: Queue[list[int]]) -> None:
    for step in range(1, 10**6):
        batch = [samples.get() for _ in range(2)]
        kit.mark("packer")
        if kit.differs(step):
            os._exit(1)
        batches.put(batch)


if __name__ == "__main__":
    kit.begin()
    spawn = multiprocessing.get_context("spawn")
    samples: Queue[int] = spawn.Queue(4)
    batches: Queue[list[int]] = spawn.Queue(2)
    spawn.Process(target=load, args=(samples,), daemon=True).start()
    spawn.Process(target=pack, args=(samples, batches), daemon=True).start()
    for step in range(1, 10**6):
        kit.mark("main")
        batches.get()
        kit.work(0.2)
        kit.step(step)
