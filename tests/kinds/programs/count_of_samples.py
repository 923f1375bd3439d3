"""Three samplers write into shared memory and count each sample in an eventfd of their own; the learner takes one of each in turn.

Once a sampler is killed while it plays: its counter stays open in the learner, and no end is ever read from it. In the twin it plays long.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from multiprocessing import shared_memory

import kit


def sample(which: int, memory: str, made: int, taken: int) -> None:
    kit.mark(f"sampler{which}")
    place = shared_memory.SharedMemory(memory)
    for number in range(1, 10**6):
        kit.work(0.2)
        if which == 1 and kit.differs(number):
            os.kill(os.getpid(), signal.SIGKILL)
        if which == 1 and kit.is_late(number):
            time.sleep(kit.LONG_S)
        place.buf[which] = number % 256
        os.eventfd_write(made, 1)
        os.eventfd_read(taken)


def main() -> None:
    kit.begin()
    memory = shared_memory.SharedMemory(create=True, size=64)
    counters = [(os.eventfd(0, os.EFD_SEMAPHORE), os.eventfd(0, os.EFD_SEMAPHORE)) for _ in range(3)]
    fork = multiprocessing.get_context("fork")
    for which, (made, taken) in enumerate(counters):
        fork.Process(target=sample, args=(which, memory.name, made, taken), daemon=True).start()
    for number in range(1, 10**6):
        for made, taken in counters:
            os.eventfd_read(made)
            os.eventfd_write(taken, 1)
        kit.mark("main")
        kit.step(number)


if __name__ == "__main__":
    main()
