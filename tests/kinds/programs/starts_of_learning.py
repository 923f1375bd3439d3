"""Two actors put two episodes for each version of the weights into a buffer, a process with a thread for each; the learner takes batches of them.

The learner asks for five, of which there may be four. In the twin the actors play for long.
"""

from __future__ import annotations

import multiprocessing
import threading
import time
from multiprocessing.connection import Client, Connection, Listener

import kit

CHANGED = threading.Condition()
EPISODES: list[int] = []
VERSION = 1


def done(what: str, value: int) -> int:
    global VERSION
    with CHANGED:
        if what == "put":
            EPISODES.append(value)
            CHANGED.notify_all()
        elif what == "version after":
            CHANGED.wait_for(lambda: value < VERSION)
        elif what == "batch":
            CHANGED.wait_for(lambda: len(EPISODES) >= value)
            del EPISODES[:value]
        else:
            VERSION = value
            CHANGED.notify_all()
        return VERSION


def serve(client: Connection) -> None:
    while True:
        client.send(done(*client.recv()))


def keep(address: str) -> None:
    kit.mark("buffer")
    with Listener(address) as listener:
        while True:
            threading.Thread(target=serve, args=(listener.accept(),), daemon=True).start()


def asked(buffer: Connection, what: str, value: int) -> int:
    buffer.send((what, value))
    return int(buffer.recv())


def act(number: int, address: str) -> None:
    buffer, version = Client(address), 0
    while True:
        kit.mark(f"actor{number}")
        version = asked(buffer, "version after", version)
        for _ in range(2):
            kit.work(0.1)
            if kit.is_late(version):
                kit.in_c(kit.LONG_S / 2) if number else time.sleep(kit.LONG_S / 2)
            asked(buffer, "put", version)


if __name__ == "__main__":
    kit.begin()
    spawn = multiprocessing.get_context("spawn")
    where = str(kit.folder() / "buffer")
    spawn.Process(target=keep, args=(where,), daemon=True).start()
    kit.until_there("buffer")
    time.sleep(0.5)
    for n in range(2):
        spawn.Process(target=act, args=(n, where), daemon=True).start()
    replay = Client(where)
    for step in range(1, 10**6):
        asked(replay, "batch", 5 if kit.differs(step) else 4)
        kit.work(0.2)
        asked(replay, "publish", step + 1)
        kit.step(step)
