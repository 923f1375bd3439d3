"""Each step a trainer makes a pool of processes, whose workers load a vocabulary before their first task. The twin has a new worker for every task.

Where loading fails the worker ends, the pool makes another one in its place, and so on: no task is ever begun.
"""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import time

import kit


def load(number: int) -> None:
    time.sleep(0.4)
    if kit.differs(number):
        raise FileNotFoundError("vocab.json")


def tokenize(_: int) -> float:
    return kit.work(0.6)


def logger() -> None:
    kit.mark("logger")
    for _ in sys.stdin:
        pass


def main() -> None:
    kit.begin()
    subprocess.Popen([sys.executable, __file__, "logger"], stdin=subprocess.PIPE)
    kit.until_there("logger")
    context = multiprocessing.get_context("fork")
    for number in range(1, 10**6):
        with context.Pool(2, load, (number,), maxtasksperchild=1) as pool:
            pool.map(tokenize, range(6), chunksize=1)
        kit.work(0.3)
        kit.step(number)


if __name__ == "__main__":
    logger() if "logger" in sys.argv else main()
