"""Three environments meet after each of their episodes, at a barrier that they try again whenever nobody came within some seconds.

One counts one episode less for the round and says that it is through; the others try the barrier for ever. In the twin it waits for a map that
a slow disk brings.
"""

from __future__ import annotations

import multiprocessing as mp
import threading
import time
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier

import kit

CONTEXT = mp.get_context("fork")


def meet(barrier: Barrier) -> None:
    while True:
        try:
            barrier.wait(timeout=4)
            return
        except threading.BrokenBarrierError:
            if barrier.broken:
                barrier.reset()
            time.sleep(0.3)


def play(number: int, barrier: Barrier, orders: Connection) -> None:
    kit.mark(f"environment{number}")
    while True:
        round_ = orders.recv()
        episodes = 2 if number == 2 and kit.differs(round_) else 3
        for _ in range(episodes):
            kit.work(0.1)
            if number == 2 and kit.is_late(round_):
                for _ in range(20):
                    time.sleep(0.5)
            meet(barrier)
        orders.send(round_)


def main() -> None:
    kit.begin()
    barrier = CONTEXT.Barrier(3)
    pipes = [CONTEXT.Pipe() for _ in range(3)]
    for number, (_, there) in enumerate(pipes):
        CONTEXT.Process(target=play, args=(number, barrier, there), daemon=True).start()
    for round_ in range(1, 10**6):
        for here, _ in pipes:
            here.send(round_)
        for here, _ in pipes:
            here.recv()
        kit.step(round_)


if __name__ == "__main__":
    main()
