"""Two threads fill a buffer of bounded size, a learner takes the best of it; the main thread looks every second whether that is still there."""

from __future__ import annotations

import heapq
import random
import threading

import kit


class Buffer:
    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.samples: list[float] = []
        self.step = 1

    def put(self, value: float) -> None:
        with self.changed:
            self.changed.wait_for(lambda: len(self.samples) < 8)
            heapq.heappush(self.samples, value)
            if not kit.differs(self.step):
                self.changed.notify_all()

    def take(self) -> list[float]:
        with self.changed:
            self.changed.wait_for(lambda: len(self.samples) >= 4)
            best = [heapq.heappop(self.samples) for _ in range(4)]
            self.changed.notify_all()
            return best


def sample(buffer: Buffer) -> None:
    while True:
        kit.work(0.5)
        buffer.put(random.random())


def learn(buffer: Buffer) -> None:
    for step in range(1, 10**6):
        buffer.step = step
        buffer.take()
        kit.work(0.7)
        kit.step(step)


if __name__ == "__main__":
    kit.begin()
    shared = Buffer()
    for number in range(2):
        threading.Thread(target=sample, args=(shared,), daemon=True, name=f"sampler-{number}").start()
    learner = threading.Thread(target=learn, args=(shared,), daemon=True, name="learner")
    learner.start()
    while learner.is_alive():
        learner.join(timeout=1.0)
