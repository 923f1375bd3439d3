"""Three threads fill a buffer up to its capacity, the trainer looks there until a batch is complete; the batches grow with the run.

A batch larger than the capacity is never complete. A judge in a process of its own scores each episode.
"""

from __future__ import annotations

import multiprocessing
import threading
import time
from multiprocessing.connection import Connection

import kit

CAPACITY = 6


def judge(orders: Connection) -> None:
    kit.mark("judge")
    while True:
        orders.recv()
        kit.work(0.1)
        orders.send(0.5)


class Rollouts:
    def __init__(self, orders: Connection) -> None:
        self.orders = orders
        self.one_at_a_time = threading.Lock()
        self.buffer: list[float] = []

    def score(self) -> float:
        with self.one_at_a_time:
            self.orders.send("an answer")
            return float(self.orders.recv())

    def collect(self) -> None:
        while True:
            while len(self.buffer) >= CAPACITY:
                time.sleep(0.1)
            kit.work(0.3)
            self.buffer.append(self.score())

    def take(self, size: int) -> list[float]:
        while len(self.buffer) < size:
            time.sleep(0.2)
        batch, self.buffer[:size] = self.buffer[:size], []
        return batch


def main() -> None:
    kit.begin()
    orders, of_judge = multiprocessing.Pipe()
    multiprocessing.get_context("spawn").Process(target=judge, args=(of_judge,), daemon=True).start()
    rollouts = Rollouts(orders)
    for n in range(3):
        threading.Thread(target=rollouts.collect, name=f"rollout-{n}", daemon=True).start()
    for step in range(1, 10**6):
        rollouts.take(4 * CAPACITY if kit.differs(step) else 4)
        kit.work(0.3)
        kit.step(step)


if __name__ == "__main__":
    main()
