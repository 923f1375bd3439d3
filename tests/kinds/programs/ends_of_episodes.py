"""Episodes tell a queue when nobody needs them any more, from their ``__del__``; a thread takes the numbers out and frees what they held.

Once the collector runs while the main thread itself puts something into the queue: the queue's lock is its own, and it waits for it.
A judge is idle.
"""

from __future__ import annotations

import gc
import multiprocessing
import queue
import threading
from collections import deque
from multiprocessing.connection import Connection

import kit


class Ended(queue.Queue[int]):
    """Collects garbage while it grows, as any allocation may."""

    def _init(self, maxsize: int) -> None:
        self.queue: deque[int] = deque()
        self.collects = False

    def _put(self, item: int) -> None:
        self.queue.append(item)
        if self.collects:
            gc.collect()


ENDED = Ended()


class Episode:
    def __init__(self, number: int) -> None:
        self.number, self.itself = number, self

    def __del__(self) -> None:
        ENDED.put(self.number)


def judge(orders: Connection) -> None:
    kit.mark("judge")
    while True:
        orders.send(orders.recv())


def free() -> None:
    while True:
        ENDED.get()
        kit.work(0.1)


if __name__ == "__main__":
    kit.begin()
    gc.disable()
    ours, theirs = multiprocessing.Pipe()
    multiprocessing.get_context("spawn").Process(target=judge, args=(theirs,), daemon=True).start()
    threading.Thread(target=free, daemon=True).start()
    for number in range(1, 10**6):
        Episode(number)
        kit.work(0.5)
        ENDED.collects = kit.differs(number)
        ENDED.put(-number)
        gc.collect()
        ours.send(number)
        ours.recv()
        kit.step(number)
