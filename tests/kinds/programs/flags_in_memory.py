"""Four ranks meet after each step: each writes its step into shared memory and spins until all others have written theirs.

One of them reads its next batch from a pipe, which is silent; the others spin, and give their processor away at each turn.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import time
from typing import Any

import kit

context = multiprocessing.get_context("spawn")
WORLD = 4


def meet(flags: Any, rank: int, number: int) -> None:
    flags[rank] = number
    while min(flags) < number:
        os.sched_yield()


def train(rank: int, flags: Any) -> None:
    kit.mark(f"rank{rank}")
    for number in range(1, 10**6):
        kit.work(0.3)
        if rank == 2 and kit.differs(number):
            with open(kit.fifo("batches"), "r+b", buffering=0) as batches:
                batches.readline()
        if kit.is_healthy() and random.random() < 0.1:
            time.sleep(random.uniform(0.5, 2))
        meet(flags, rank, number)
        if rank == 0:
            kit.step(number)


def main() -> None:
    kit.begin()
    flags = context.RawArray("q", WORLD)
    ranks = [context.Process(target=train, args=(rank, flags)) for rank in range(WORLD)]
    for one in ranks:
        one.start()
    for one in ranks:
        one.join()


if __name__ == "__main__":
    main()
