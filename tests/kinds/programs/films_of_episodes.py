"""Each round a trainer starts an environment, which starts a process of its own that makes a film of the episode's pictures, and joins it.

An environment that is through waits for its children before it ends. Once it forgets the end mark: the film waits for more pictures. In the twin
films take some seconds, with the environment long through.
"""

from __future__ import annotations

import multiprocessing
import random
import time
from typing import Any

import kit


def film(pictures: Any) -> None:
    kit.mark("film")
    while pictures.get() is not None:
        kit.work(0.1)
    time.sleep(random.uniform(1, 7))


def play(number: int, context: Any) -> None:
    kit.mark("environment")
    pictures = context.Queue()
    context.Process(target=film, args=(pictures,)).start()
    for picture in range(5):
        kit.work(0.1)
        pictures.put(bytes([picture]) * 1024)
    if not kit.differs(number):
        pictures.put(None)


def main() -> None:
    kit.begin()
    context = multiprocessing.get_context("fork")
    for number in range(1, 10**6):
        environment = context.Process(target=play, args=(number, context))
        environment.start()
        environment.join()
        kit.work(0.3)
        kit.step(number)


if __name__ == "__main__":
    main()
