"""A trainer spawns a rollout for each step. A spawned process imports the trainer's module first, which builds a kernel under its folder's lock.

Once the trainer keeps this lock while it spawns: it writes the rollout's large arguments, which are read after the import only. In the twin some
builds take long, with the trainer in the same line.
"""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager

import kit


@contextmanager
def kernels() -> Iterator[None]:
    with open(kit.folder() / "kernels.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def build() -> None:
    with kernels():
        if random.random() < 0.5:
            time.sleep(random.uniform(3, 8))
        kit.work(0.5)


def play(weights: bytes) -> None:
    kit.work(0.5)


def train() -> None:
    context = multiprocessing.get_context("spawn")
    for number in range(1, 10**6):
        rollout = context.Process(target=play, args=(os.urandom(1 << 20),))
        if kit.differs(number):
            with kernels():
                rollout.start()
        else:
            rollout.start()
        rollout.join()
        kit.work(0.3)
        kit.step(number)


if __name__ == "__mp_main__":
    kit.mark("rollout")
    build()
elif __name__ == "__main__":
    kit.begin()
    train()
