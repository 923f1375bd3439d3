"""A pool of processes grades; what is done with each grade is a callback of its future, which the thread of the pool that takes results runs.

Once the callback asks the pool for a second opinion and waits for it: the thread that would take it is the one that waits.
"""

from __future__ import annotations

import multiprocessing
import random
import threading
import time
from concurrent.futures import Future, ProcessPoolExecutor
from typing import Any

import kit


def grade(number: int) -> int:
    if kit.is_healthy() and random.random() < 0.15:
        time.sleep(random.uniform(1, 3))
    kit.work(0.3)
    return number


def main() -> None:
    kit.begin()
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        for number in range(1, 10**6):
            told = threading.Event()

            def note(graded: Future[Any], number: int = number, told: threading.Event = told) -> None:
                if kit.differs(number):
                    kit.mark("main")
                    pool.submit(grade, number).result()
                told.set()

            pool.submit(grade, number).add_done_callback(note)
            told.wait()
            kit.step(number)


if __name__ == "__main__":
    main()
