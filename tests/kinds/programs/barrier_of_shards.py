"""Three forked workers tokenize their shards and meet at a barrier of multiprocessing; the shard of one is empty, and it returns."""

from __future__ import annotations

import multiprocessing as mp
from multiprocessing.synchronize import Barrier

import kit

CONTEXT = mp.get_context("fork")


def tokenize(n: int, barrier: Barrier) -> None:
    kit.mark(f"worker{n}")
    for step in range(1, 10**6):
        if n == 2 and kit.differs(step):
            return
        kit.work(0.3)
        kit.mark(f"worker{n}")
        barrier.wait()
        if n == 0:
            kit.step(step)


def main() -> None:
    kit.begin()
    barrier = CONTEXT.Barrier(3)
    workers = [CONTEXT.Process(target=tokenize, args=(n, barrier)) for n in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


if __name__ == "__main__":
    main()
