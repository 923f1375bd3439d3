"""A process makes episodes, another trains on them; they are handed over in a queue."""

from __future__ import annotations

import multiprocessing
import multiprocessing.queues
import os

import kit


def make_episodes(episodes: multiprocessing.queues.Queue[list[int]]) -> None:
    kit.mark("maker")
    for step in range(1, 10**6):
        kit.work(1.5)
        if kit.differs(step):
            os._exit(1)
        episodes.put(list(range(step)))


def train(episodes: multiprocessing.queues.Queue[list[int]]) -> None:
    for step in range(1, 10**6):
        kit.mark("main")
        batch = episodes.get()
        kit.work(0.02 * len(batch) % 0.5)
        kit.step(step)


if __name__ == "__main__":
    kit.begin()
    ready: multiprocessing.queues.Queue[list[int]] = multiprocessing.Queue(8)
    multiprocessing.Process(target=make_episodes, args=(ready,), daemon=True).start()
    train(ready)
