"""Answers are graded in a pool of processes; each of them has a pool of threads for answers and for the parts of long ones."""

from __future__ import annotations

import concurrent.futures
import multiprocessing

import kit

threads = concurrent.futures.ThreadPoolExecutor(2, thread_name_prefix="grade")


def part() -> int:
    kit.work(0.5)
    return 1


def answer(is_long: bool) -> int:
    kit.work(0.3)
    return threads.submit(part).result() if is_long else part()


def grade(step: int) -> int:
    kit.mark("grader")
    several = [threads.submit(answer, kit.differs(step)) for _ in range(3)]
    return sum(one.result() for one in several)


if __name__ == "__main__":
    kit.begin()
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        for step in range(1, 10**6):
            grades = pool.submit(grade, step)
            kit.work(0.2)
            grades.result()
            kit.step(step)
