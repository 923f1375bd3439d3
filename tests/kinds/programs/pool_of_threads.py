"""Documents are split in a pool of threads; a long one is split once more by the same means."""

from __future__ import annotations

from multiprocessing.pool import ThreadPool

import kit

SPLITTERS, PARTS = ThreadPool(2), ThreadPool(2)


def split_part(part: int) -> int:
    kit.work(0.2)
    return part


def split(task: tuple[int, int]) -> int:
    step, _ = task
    kit.work(0.1)
    kit.mark("main")
    pool = SPLITTERS if kit.differs(step) else PARTS
    return sum(pool.map(split_part, range(3)))


if __name__ == "__main__":
    kit.begin()
    for step in range(1, 10**6):
        SPLITTERS.map(split, [(step, document) for document in range(4)])
        kit.step(step)
