"""Workers take answers from a queue that counts what is unfinished; the trainer fills it and waits until all is done."""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.queues

import kit


def score(step: int, n: int) -> None:
    kit.work(0.5)
    if n == 3 and kit.differs(step):
        raise ValueError("an answer without a number")


def run(number: int, answers: multiprocessing.queues.JoinableQueue[tuple[int, int]]) -> None:
    kit.mark(f"worker{number}")
    while True:
        step, n = answers.get()
        with contextlib.suppress(ValueError):
            score(step, n)
            answers.task_done()


if __name__ == "__main__":
    kit.begin()
    spawn = multiprocessing.get_context("spawn")
    filled: multiprocessing.queues.JoinableQueue[tuple[int, int]] = spawn.JoinableQueue()
    workers = [spawn.Process(target=run, args=(number, filled), daemon=True) for number in range(3)]
    for process in workers:
        process.start()
    for step in range(1, 10**6):
        for n in range(6):
            filled.put((step, n))
        filled.join()
        kit.step(step)
