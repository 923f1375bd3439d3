"""A sampler writes episodes into a ring in shared memory and says after every second one that there are new ones; the learner takes them."""

from __future__ import annotations

import multiprocessing
import time
from multiprocessing.shared_memory import SharedMemory
from multiprocessing.synchronize import Event

import kit

SLOTS = 4


def sample(name: str, fresh: Event) -> None:
    kit.mark("sampler")
    memory = SharedMemory(name)
    counts = memory.buf.cast("Q")
    for _ in range(10**6):
        for _ in range(2):
            kit.work(0.6)
            while counts[0] - counts[1] >= SLOTS:
                time.sleep(0.02)
            counts[0] += 1
        fresh.set()


def learn(name: str, fresh: Event) -> None:
    kit.mark("learner")
    memory = SharedMemory(name)
    counts = memory.buf.cast("Q")
    for step in range(1, 10**6):
        fresh.wait()
        fresh.clear()
        for _ in range(1 if kit.differs(step) else int(counts[0] - counts[1])):
            counts[1] += 1
        kit.work(0.3)
        kit.step(step)


if __name__ == "__main__":
    kit.begin()
    spawn = multiprocessing.get_context("spawn")
    ring = SharedMemory(create=True, size=4096)
    ring.buf[:] = bytes(len(ring.buf))
    told = spawn.Event()
    both = [spawn.Process(target=target, args=(ring.name, told)) for target in (sample, learn)]
    for process in both:
        process.start()
    for process in both:
        process.join()
