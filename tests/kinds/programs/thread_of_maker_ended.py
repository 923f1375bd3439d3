"""A thread of a process plays episodes and puts them into a queue of multiprocessing; the main thread there answers for its state.

The thread ends with an error that is only logged. The learner asks the queue for five seconds at a time. In the twin a play is long.
"""

from __future__ import annotations

import logging
import multiprocessing
import queue
import threading
import time
from multiprocessing.connection import Listener
from multiprocessing.queues import Queue

import kit


def play(episodes: Queue[int]) -> None:
    for step in range(1, 10**6):
        kit.mark("maker")
        kit.work(0.3)
        if kit.differs(step):
            raise ValueError("an episode without an end")
        if kit.is_late(step):
            time.sleep(kit.LONG_S / 2)
            kit.in_c(10)
        episodes.put(step)


def make(episodes: Queue[int]) -> None:
    threading.Thread(target=play, args=(episodes,), daemon=True).start()
    with Listener(str(kit.folder() / "state"), "AF_UNIX") as listener:
        while True:
            with listener.accept() as asker:
                asker.send("well")


def main() -> None:
    kit.begin()
    context = multiprocessing.get_context("spawn")
    episodes = context.Queue(4)
    context.Process(target=make, args=(episodes,), daemon=True).start()
    kit.mark("main")
    while True:
        try:
            step = episodes.get(timeout=5)
        except queue.Empty:
            logging.warning("still no episode")
            continue
        kit.step(step)


if __name__ == "__main__":
    main()
