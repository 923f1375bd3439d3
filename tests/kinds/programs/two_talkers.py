"""Two agents of a game talk over a pipe, in turns: each sends its move and then waits for the other's."""

from __future__ import annotations

import multiprocessing
from multiprocessing.connection import Connection

import kit


def play(name: str, other: Connection, begins: bool) -> None:
    kit.mark(name)
    step = 0
    if begins:
        other.send(0)
    while True:
        move = other.recv()
        step += 1
        kit.work(0.6)
        if begins:
            kit.step(step)
        kit.mark(name)
        if begins and kit.differs(step):
            other.recv()
        other.send(move + 1)


if __name__ == "__main__":
    kit.begin()
    left, right = multiprocessing.Pipe()
    players = [multiprocessing.get_context("spawn").Process(target=play, args=args) for args in (("left", left, True), ("right", right, False))]
    for player in players:
        player.start()
    left.close()
    right.close()
    for player in players:
        player.join()
