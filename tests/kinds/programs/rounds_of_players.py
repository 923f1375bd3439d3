"""Three players, each a process, begin every round together by multiprocessing's barrier."""

from __future__ import annotations

import multiprocessing
import os
import signal
from multiprocessing.synchronize import Barrier

import kit


def play(name: str, start: Barrier) -> None:
    for step in range(1, 10**6):
        kit.mark(name)
        start.wait()
        kit.work(0.4)
        if name == "player2" and kit.differs(step):
            os.kill(os.getpid(), signal.SIGKILL)
        if name == "player0":
            kit.step(step)


if __name__ == "__main__":
    kit.begin()
    together = multiprocessing.Barrier(3)
    players = [multiprocessing.Process(target=play, args=(f"player{n}", together)) for n in range(3)]
    for player in players:
        player.start()
    for player in players:
        player.join()
