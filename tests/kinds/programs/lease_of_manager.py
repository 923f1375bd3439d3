"""Three actors write into one table in turn; its lock is one of a manager, a process of its own.

One of them is killed as the kernel does when memory is short, with the lock in hand. The manager goes on; the others wait for its answer.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from typing import Any

import kit

context = multiprocessing.get_context("spawn")


def act(n: int, lock: Any, table: Any) -> None:
    kit.mark(f"actor{n}")
    for number in range(1, 10**6):
        kit.work(0.4)
        with lock:
            if n == 1 and kit.differs(number):
                os.kill(os.getpid(), signal.SIGKILL)
            if kit.is_healthy() and random.random() < 0.1:
                time.sleep(random.uniform(1, 3))
            table[n] = number
        if n == 0:
            kit.step(number)


def main() -> None:
    kit.begin()
    with context.Manager() as manager:
        lock, table = manager.Lock(), manager.dict()
        actors = [context.Process(target=act, args=(n, lock, table)) for n in range(3)]
        for one in actors:
            one.start()
        for one in actors:
            one.join()


if __name__ == "__main__":
    main()
