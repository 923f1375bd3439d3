"""Each step has a pool of one grader, which is to be made anew after two answers, as graders leak memory. A logger is idle.

With a third answer in the queue the grader ends after its second one, and the pool makes no other, as it believes that one is idle. In the twin a
grader is made anew after each answer, and one answer is long.
"""

from __future__ import annotations

import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.connection import Connection

import kit

spawn = multiprocessing.get_context("spawn")


def grade(number: int) -> int:
    kit.mark("grader")
    kit.work(0.3)
    if kit.is_late(number):
        time.sleep(kit.LONG_S)
    return number


def logger(lines: Connection) -> None:
    kit.mark("logger")
    while True:
        lines.send(lines.recv())


def main() -> None:
    kit.begin()
    mine, theirs = spawn.Pipe()
    spawn.Process(target=logger, args=(theirs,), daemon=True).start()
    for number in range(1, 10**6):
        answers = 3 if kit.is_healthy() or kit.differs(number) else 2
        with ProcessPoolExecutor(1, mp_context=spawn, max_tasks_per_child=1 if kit.is_healthy() else 2) as pool:
            grades = [pool.submit(grade, number) for _ in range(answers)]
            for one in grades:
                one.result()
        mine.send(number)
        mine.recv()
        kit.step(number)


if __name__ == "__main__":
    main()
