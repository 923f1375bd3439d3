"""Two workers of a pool judge formulas, each in a child of its own by fork, which sends its proof through a pipe.

Once a proof is larger than the pipe, and the worker waits for the end of its child before it reads. In the twin proofs are small, and one is long.
"""

from __future__ import annotations

import multiprocessing
import os
import time

import kit


def judge(asked: tuple[int, int]) -> int:
    step, number = asked
    kit.mark(f"worker{number % 2}" if number < 2 else "other")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        if number == 1:
            kit.mark("child")
        kit.work(0.2)
        is_large = number == 1 and kit.differs(step)
        if number == 1 and kit.is_late(step):
            time.sleep(kit.LONG_S)
        os.write(writing, b"p" * (500_000 if is_large else 500))
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    proof = os.read(reading, 1 << 20)
    os.close(reading)
    return len(proof)


def main() -> None:
    kit.begin()
    with multiprocessing.get_context("fork").Pool(2) as pool:
        for step in range(1, 10**6):
            sum(pool.imap_unordered(judge, [(step, 0), (step, 1)]))
            kit.work(0.2)
            kit.step(step)


if __name__ == "__main__":
    main()
