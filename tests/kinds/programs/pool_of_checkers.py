"""Checks run in multiprocessing's pool; a program that is checked may end its worker."""

from __future__ import annotations

import multiprocessing
import os

import kit


def check(task: tuple[int, int]) -> bool:
    step, n = task
    if n == 1 and kit.differs(step):
        kit.mark("gone")
        os._exit(1)
    kit.work(0.4)
    return True


if __name__ == "__main__":
    kit.begin()
    with multiprocessing.Pool(3) as pool:
        for step in range(1, 10**6):
            kit.mark("main")
            pool.map(check, [(step, n) for n in range(3)], chunksize=1)
            kit.step(step)
