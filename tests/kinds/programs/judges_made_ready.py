"""Each step has a new pool of three judge processes, started as the answers come; each loads its model and meets the others before it judges.

A batch has two answers only, and the pool starts two judges. In the twin one of the three loads for long, in one call.
"""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor, wait
from multiprocessing.synchronize import Barrier

import kit


def load(step: int, ready: Barrier) -> None:
    number = int(multiprocessing.current_process().name.rpartition("-")[2]) % 3
    kit.mark(f"judge{number}")
    kit.in_c(kit.LONG_S if kit.is_late(step) and number == 0 else 0.3)
    ready.wait()


def judge(answer: int) -> float:
    kit.work(0.1)
    return answer / 2


if __name__ == "__main__":
    kit.begin()
    spawn = multiprocessing.get_context("spawn")
    for step in range(1, 10**6):
        with ProcessPoolExecutor(3, spawn, load, (step, spawn.Barrier(3))) as judges:
            wait([judges.submit(judge, n) for n in range(2 if kit.differs(step) else 3)])
        kit.step(step)
