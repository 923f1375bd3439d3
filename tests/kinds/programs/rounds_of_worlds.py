"""Three simulators meet at a barrier after each round; in each of them a thread plays and the main thread keeps a clock. A recorder is idle.

In one of them the thread dies of a bad action. Its process goes on keeping the clock, so nobody sees that a party of the barrier is gone.
"""

from __future__ import annotations

import multiprocessing
import random
import threading
import time
from typing import Any

import kit

context = multiprocessing.get_context("forkserver")


def play(n: int, barrier: Any) -> None:
    for number in range(1, 10**6):
        kit.work(0.4)
        if n == 1 and kit.differs(number):
            raise ValueError("no such action")
        if kit.is_healthy() and random.random() < 0.1:
            time.sleep(random.uniform(1, 3))
        barrier.wait()
        if n == 0:
            kit.step(number)


def simulate(n: int, barrier: Any) -> None:
    kit.mark(f"simulator{n}")
    threading.Thread(target=play, args=(n, barrier), name="play", daemon=True).start()
    while True:
        time.sleep(0.5)


def record() -> None:
    kit.mark("recorder")
    while True:
        time.sleep(0.5)


def main() -> None:
    kit.begin()
    barrier = context.Barrier(3)
    children = [context.Process(target=simulate, args=(n, barrier)) for n in range(3)] + [context.Process(target=record)]
    for child in children:
        child.start()
    for child in children:
        child.join()


if __name__ == "__main__":
    main()
