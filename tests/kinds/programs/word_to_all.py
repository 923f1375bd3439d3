"""Three environments wait for an event of multiprocessing at the beginning of each round; a killed one is made anew.

Once a guard of memory kills one while it waits for the event: who sets the event waits for a word of each waiter, also of the dead one. In the
twin nobody is killed, and a game is long.
"""

from __future__ import annotations

import multiprocessing
import time
from multiprocessing.connection import Connection

import kit

spawn = multiprocessing.get_context("spawn")


def environment(index: int, first: int, begins: list, results: Connection) -> None:
    kit.mark(f"environment{index}")
    for number in range(first, 10**6):
        begins[number % 2].wait()
        kit.work(0.3)
        if index == 1 and kit.is_late(number):
            time.sleep(kit.LONG_S)
        results.send(number)


def main() -> None:
    kit.begin()
    begins = [spawn.Event(), spawn.Event()]
    pipes = [spawn.Pipe(duplex=False) for _ in range(3)]
    games = [spawn.Process(target=environment, args=(index, 1, begins, pipes[index][1])) for index in range(3)]
    for game in games:
        game.start()
    for index in range(3):
        kit.until_there(f"environment{index}")
    for number in range(1, 10**6):
        kit.work(0.5)
        if kit.differs(number):
            time.sleep(0.5)
            games[2].kill()
            games[2].join()
            games[2] = spawn.Process(target=environment, args=(2, number, begins, pipes[2][1]))
            games[2].start()
            time.sleep(2)
        begins[number % 2].set()
        for results, _ in pipes:
            results.recv()
        begins[number % 2].clear()
        kit.step(number)


if __name__ == "__main__":
    main()
