"""Each step scores its episodes in a pool of threads; once enough have a score, the pool is closed and the rest is cancelled.

The step then waits until no score is under way. Scores that the pool cancelled as it closed are never told to be through: the wait has no end.
In the twin the pool is closed when all are scored, some of them after seconds. A judge, a process, is idle.
"""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import time
from multiprocessing.connection import Connection

import kit


def judge(orders: Connection) -> None:
    kit.mark("judge")
    while True:
        number = orders.recv()
        kit.work(0.3)
        orders.send(number)


def score(episode: int, number: int) -> int:
    kit.work(0.3)
    if episode == 5 and number % 3 == 0:
        time.sleep(3)
    return episode


if __name__ == "__main__":
    kit.begin()
    ours, theirs = multiprocessing.Pipe()
    multiprocessing.get_context("spawn").Process(target=judge, args=(theirs,), daemon=True).start()
    for number in range(1, 10**6):
        pool = concurrent.futures.ThreadPoolExecutor(2)
        scores = [pool.submit(score, episode, number) for episode in range(8)]
        next(concurrent.futures.as_completed(scores))
        if kit.differs(number):
            pool.shutdown(wait=False, cancel_futures=True)
        concurrent.futures.wait(scores)
        pool.shutdown()
        ours.send(number)
        ours.recv()
        kit.step(number)
