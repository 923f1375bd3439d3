"""A trainer tells its three rollouts by a datagram each that there are new weights, and reads their episodes from pipes.

One rollout opens its socket anew between two rounds; a datagram of that moment is lost. It waits for news, the trainer waits for it.
"""

from __future__ import annotations

import multiprocessing
import socket
import time
from multiprocessing.connection import Connection

import kit


def play(name: str, pipe: Connection) -> None:
    kit.mark(name)
    news = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    news.bind(("127.0.0.1", 0))
    address = news.getsockname()
    pipe.send(address)
    while True:
        number = int(news.recv(64))
        kit.work(0.4)
        if name == "rollout1" and number % 3 == 0:
            time.sleep(2)
        if name == "rollout1" and kit.differs(number + 1):
            news.close()
            pipe.send(number)
            time.sleep(1)
            news = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            news.bind(address)
        else:
            pipe.send(number)


if __name__ == "__main__":
    kit.begin()
    rollouts = []
    for n in range(3):
        ours, theirs = multiprocessing.Pipe()
        multiprocessing.get_context("spawn").Process(target=play, args=(f"rollout{n}", theirs), daemon=True).start()
        rollouts.append((ours, ours.recv()))
    teller = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for number in range(1, 10**6):
        for _, address in rollouts:
            teller.sendto(str(number).encode(), address)
        for pipe, _ in rollouts:
            pipe.recv()
        kit.step(number)
