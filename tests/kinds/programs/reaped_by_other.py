"""A trainer has a simulator for each round, a process of multiprocessing, and looks until it has ended. A judge is idle.

A library takes the exit status of every child, as supervisors do: then multiprocessing never learns that its own has ended. In the twin the library
takes its own alone, and a game is long.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from multiprocessing.connection import Connection

import kit

spawn = multiprocessing.get_context("spawn")


def simulator(number: int) -> None:
    kit.mark("simulator")
    kit.work(0.3)
    if kit.is_late(number):
        time.sleep(kit.LONG_S)


def judge(lines: Connection) -> None:
    kit.mark("judge")
    while True:
        lines.send(lines.recv())


def reap(*_: object) -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def main() -> None:
    kit.begin()
    mine, theirs = spawn.Pipe()
    spawn.Process(target=judge, args=(theirs,), daemon=True).start()
    for number in range(1, 10**6):
        if kit.differs(number):
            signal.signal(signal.SIGCHLD, reap)
        game = spawn.Process(target=simulator, args=(number,))
        game.start()
        while game.is_alive():
            time.sleep(0.2)
        mine.send(number)
        mine.recv()
        kit.step(number)


if __name__ == "__main__":
    main()
