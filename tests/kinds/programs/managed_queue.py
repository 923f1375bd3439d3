"""Episodes go through a queue of multiprocessing's manager; two actors fill it, the trainer takes them out."""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal

import kit


def act(name: str, episodes: queue.Queue[int]) -> None:
    kit.mark(name)
    for step in range(1, 10**6):
        kit.work(0.7)
        if kit.differs(step):
            kit.mark(name)
            os.kill(os.getpid(), signal.SIGKILL)
        episodes.put(step)


if __name__ == "__main__":
    kit.begin()
    with multiprocessing.Manager() as manager:
        episodes = manager.Queue()
        actors = [multiprocessing.Process(target=act, args=(f"actor{n}", episodes)) for n in range(2)]
        for actor in actors:
            actor.start()
        while True:
            kit.mark("main")
            kit.step(episodes.get())
