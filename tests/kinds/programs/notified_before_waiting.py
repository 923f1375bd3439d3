"""A sampler puts an episode into shared memory and tells the learner by a condition; the learner tells by another that it has taken it.

Once the learner looks too late: it takes the condition after the word was given, does not look whether there is something, and waits.
"""

from __future__ import annotations

import multiprocessing
import random
import time
from typing import Any

import kit

context = multiprocessing.get_context("forkserver")


def sample(version: Any, filled: Any, emptied: Any) -> None:
    kit.mark("sampler")
    for number in range(1, 10**6):
        kit.work(0.4)
        if kit.is_healthy() and random.random() < 0.15:
            time.sleep(random.uniform(1, 3))
        with filled:
            version[0] = number
            filled.notify_all()
        with emptied:
            emptied.wait_for(lambda wanted=number: version[1] >= wanted)


def learn(version: Any, filled: Any, emptied: Any) -> None:
    kit.mark("learner")
    for number in range(1, 10**6):
        if kit.differs(number):
            time.sleep(4)
            with filled:
                filled.wait()
        else:
            with filled:
                filled.wait_for(lambda wanted=number: version[0] >= wanted)
        kit.work(0.3)
        with emptied:
            version[1] = number
            emptied.notify_all()
        kit.step(number)


def record() -> None:
    kit.mark("recorder")
    while True:
        time.sleep(0.5)


def main() -> None:
    kit.begin()
    shared = (context.Array("q", [0, 0]), context.Condition(), context.Condition())
    children = [context.Process(target=one, args=shared) for one in (sample, learn)] + [context.Process(target=record)]
    for child in children:
        child.start()
    for child in children:
        child.join()


if __name__ == "__main__":
    main()
