"""A pool of two processes grades batches; each of them has a pool of its own for the single answers."""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import kit

INNER: dict[int, Any] = {}


def grade_answer(task: tuple[str, int, int]) -> int:
    name, step, n = task
    if name == "batch1" and n == 1 and kit.differs(step):
        kit.mark("grader")
        return len(os.read(os.open(kit.fifo("verdicts"), os.O_RDONLY), 16))
    kit.work(0.2)
    return n


def grade_batch(name: str, step: int) -> int:
    kit.mark(f"outer{os.getpid()}")
    if os.getpid() not in INNER:
        INNER[os.getpid()] = multiprocessing.get_context("fork").Pool(2)
    return int(sum(INNER[os.getpid()].map(grade_answer, [(name, step, n) for n in range(4)], chunksize=1)))


if __name__ == "__main__":
    kit.begin()
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as outer:
        for step in range(1, 10**6):
            kit.mark("main")
            for batch in [outer.submit(grade_batch, f"batch{n}", step) for n in range(2)]:
                batch.result()
            kit.step(step)
