"""A trainer reads prompts with a pool of threads and forks a scorer for each step, which scores with a pool of threads as well.

Once the scorer uses the trainer's pool, which it has as a copy: its threads did not come along, but the pool counts them as idle. In the twin a
score takes half a minute.
"""

from __future__ import annotations

import multiprocessing
import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection

import kit

POOL = ThreadPoolExecutor(4, thread_name_prefix="prompts")
FORK = multiprocessing.get_context("fork")


def read(prompt: int) -> int:
    time.sleep(0.02)
    return prompt * 7


def score(prompt: int) -> float:
    kit.work(0.2)
    return prompt % 5 / 5


def long_score(prompt: int) -> float:
    time.sleep(kit.LONG_S)
    return score(prompt)


def scores(number: int, prompts: list[int], answers: Connection) -> None:
    kit.mark("scorer")
    if kit.differs(number):
        answers.send(list(POOL.map(score, prompts)))
    else:
        with ThreadPoolExecutor(4, thread_name_prefix="scores") as pool:
            answers.send(list(pool.map(long_score if kit.is_late(number) else score, prompts)))


def main() -> None:
    kit.begin()
    for number in range(1, 10**6):
        prompts = list(POOL.map(read, range(number, number + 4)))
        ours, theirs = FORK.Pipe(duplex=False)
        scorer = FORK.Process(target=scores, args=(number, prompts, theirs))
        scorer.start()
        theirs.close()
        ours.recv()
        scorer.join()
        kit.step(number)


if __name__ == "__main__":
    main()
