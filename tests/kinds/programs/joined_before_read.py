"""Each step forks a scorer that puts its scores into a queue; the trainer joins it and then reads. A sampler beside waits for orders.

Scores of every token are more than the queue's pipe holds: the scorer cannot end before they are read.
"""

from __future__ import annotations

import multiprocessing
from multiprocessing.queues import Queue, SimpleQueue

import kit


def score(scores: Queue, tokens: int, step: int) -> None:
    kit.mark("scorer")
    kit.work(0.5)
    if kit.is_healthy() and step % 5 == 0:
        kit.work(3.0)
    scores.put([0.25] * tokens)


def sample(orders: SimpleQueue) -> None:
    kit.mark("sampler")
    while True:
        orders.get()
        kit.work(0.1)


def main() -> None:
    kit.begin()
    fork = multiprocessing.get_context("fork")
    orders, scores = fork.SimpleQueue(), fork.Queue()
    fork.Process(target=sample, args=(orders,), daemon=True).start()
    for step in range(1, 10**6):
        orders.put(step)
        scorer = fork.Process(target=score, args=(scores, 400_000 if kit.differs(step) else 400, step))
        scorer.start()
        scorer.join()
        scores.get()
        kit.work(0.2)
        kit.step(step)


if __name__ == "__main__":
    main()
