"""Episodes pass through three threads of a program, from queue to queue; the trainer waits until the first queue is all done.

Once the second thread ends by an error, and nobody takes from its queue. In the twin an episode is long in it.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable

import kit

EPISODES = 6


def stage(do: Callable[[tuple[int, int]], None], taken: queue.Queue[tuple[int, int]], given: queue.Queue[tuple[int, int]] | None) -> None:
    while True:
        episode = taken.get()
        do(episode)
        if given is not None:
            given.put(episode)
            given.join()
        taken.task_done()


def play(episode: tuple[int, int]) -> None:
    kit.work(0.1)


def score(episode: tuple[int, int]) -> None:
    step, number = episode
    kit.work(0.1)
    if number == 2 and kit.is_late(step):
        time.sleep(kit.LONG_S)
    if number == 2 and kit.differs(step):
        raise ValueError("no score")


def pack(episode: tuple[int, int]) -> None:
    kit.work(0.05)


def main() -> None:
    kit.begin()
    prompts: queue.Queue[tuple[int, int]] = queue.Queue()
    played: queue.Queue[tuple[int, int]] = queue.Queue(maxsize=2)
    scored: queue.Queue[tuple[int, int]] = queue.Queue(maxsize=2)
    for name, do, taken, given in (("play", play, prompts, played), ("score", score, played, scored), ("pack", pack, scored, None)):
        threading.Thread(target=stage, args=(do, taken, given), name=name, daemon=True).start()
    for step in range(1, 10**6):
        for number in range(EPISODES):
            prompts.put((step, number))
        prompts.join()
        kit.step(step)


if __name__ == "__main__":
    main()
