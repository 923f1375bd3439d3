"""A host of environments has a player for each round, which puts its episode into a queue of multiprocessing and then waits for feedback on it.

Players are processes of multiprocessing. Once the host forks one by itself: that one has the queue as it was, with a feeder thread that did not
come along, so that what it puts is never sent. In the twin a player plays for half a minute.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from multiprocessing.connection import Connection
from typing import Any

import kit

FORK = multiprocessing.get_context("fork")


def play(number: int, episodes: Any, feedback: Connection) -> None:
    kit.mark("player")
    kit.work(0.4)
    if kit.is_late(number):
        time.sleep(kit.LONG_S)
    episodes.put([number] * 50)
    feedback.recv()


def host(episodes: Any, orders: Connection, feedback: Connection) -> None:
    kit.mark("host")
    episodes.put("ready")
    while True:
        number = orders.recv()
        if kit.differs(number):
            pid = os.fork()
            if pid == 0:
                play(number, episodes, feedback)
                os._exit(0)
            os.waitpid(pid, 0)
        else:
            player = FORK.Process(target=play, args=(number, episodes, feedback))
            player.start()
            player.join()


def main() -> None:
    kit.begin()
    episodes = FORK.Queue()
    (ours, orders), (theirs, feedback) = FORK.Pipe(), FORK.Pipe()
    FORK.Process(target=host, args=(episodes, orders, feedback)).start()
    orders.close()
    feedback.close()
    episodes.get()
    for number in range(1, 10**6):
        ours.send(number)
        episode = episodes.get()
        theirs.send(len(episode))
        kit.step(number)


if __name__ == "__main__":
    main()
