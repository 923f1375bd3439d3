"""A trainer steps two games in processes over pipes; a game asks over a second pipe for the opponent's move, and a thread of the trainer answers.

Once that thread opens an opponent's checkpoint that is a pipe without a writer. In the twin a checkpoint is loaded for long.
"""

from __future__ import annotations

import multiprocessing
import threading
import time
from multiprocessing.connection import Connection, wait
from pathlib import Path

import kit


def game(number: int, steps: Connection, moves: Connection) -> None:
    kit.mark(f"game{number}")
    while True:
        step = steps.recv()
        kit.work(0.2)
        moves.send(step)
        moves.recv()
        steps.send(step)


def answer(moves: list[Connection]) -> None:
    while True:
        for number, one in enumerate(moves):
            if one in wait([one], 0.05):
                step = one.recv()
                if number == 1 and kit.differs(step):
                    Path(kit.fifo("opponent")).read_bytes()
                if number == 1 and kit.is_late(step):
                    time.sleep(kit.LONG_S)
                one.send(0)


def main() -> None:
    kit.begin()
    context = multiprocessing.get_context("spawn")
    steps, moves = [], []
    for number in range(2):
        (here, there), (asked, asks) = context.Pipe(), context.Pipe()
        context.Process(target=game, args=(number, there, asks), daemon=True).start()
        there.close()
        asks.close()
        steps.append(here)
        moves.append(asked)
    threading.Thread(target=answer, args=(moves,), name="opponents", daemon=True).start()
    for step in range(1, 10**6):
        for one in steps:
            one.send(step)
        for one in steps:
            one.recv()
        kit.work(0.2)
        kit.step(step)


if __name__ == "__main__":
    main()
