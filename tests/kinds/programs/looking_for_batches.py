"""The trainer looks for batches in a list that a collector thread fills, and sleeps between its looks."""

from __future__ import annotations

import threading
import time

import kit

BATCHES: list[int] = []


def collect() -> None:
    step = 0
    while not kit.differs(step + 1):
        step += 1
        kit.work()
        BATCHES.append(step)
    kit.mark("main")


def next_batch() -> int:
    while not BATCHES:
        time.sleep(0.2)
    return BATCHES.pop(0)


if __name__ == "__main__":
    kit.begin()
    threading.Thread(target=collect, name="collector").start()
    while True:
        batch = next_batch()
        kit.work(0.2)
        kit.step(batch)
