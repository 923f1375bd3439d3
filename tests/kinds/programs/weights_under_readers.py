"""Two threads of a trainer read the weights, a third renews them; readers wait while one wants to write. Two threads only look on."""

from __future__ import annotations

import contextlib
import multiprocessing
import socket
import threading
import time
from collections.abc import Iterator

import kit


class Weights:
    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.readers = 0
        self.is_wanted = False

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        with self.changed:
            self.changed.wait_for(lambda: not self.is_wanted)
            self.readers += 1
        try:
            yield
        finally:
            with self.changed:
                self.readers -= 1
                self.changed.notify_all()

    def renew(self) -> None:
        with self.changed:
            self.is_wanted = True
            self.changed.wait_for(lambda: self.readers == 0)
            kit.work(0.05)
            self.is_wanted = False
            self.changed.notify_all()


class Trainer:
    def __init__(self) -> None:
        self.weights = Weights()
        self.asked = threading.Event()
        self.meeting = threading.Barrier(2)

    def read_first(self) -> None:
        for step in range(1, 10**6):
            kit.mark("trainer")
            with self.weights.reading():
                kit.work(0.2)
                self.asked.set()
                if kit.differs(step):
                    self.meeting.wait()
            self.meeting.wait()
            kit.step(step)

    def read_second(self) -> None:
        for step in range(1, 10**6):
            kit.work(0.2)
            while kit.differs(step) and not self.weights.is_wanted:
                time.sleep(0.01)
            with self.weights.reading():
                kit.mark("trainer")
            self.meeting.wait()

    def renew(self) -> None:
        while True:
            self.asked.wait()
            self.asked.clear()
            self.weights.renew()


def look_on() -> None:
    while True:
        time.sleep(2)


def listen() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.accept()


def train() -> None:
    trainer = Trainer()
    threads = [threading.Thread(target=work) for work in (trainer.read_first, trainer.read_second)]
    threads += [threading.Thread(target=work, daemon=True) for work in (trainer.renew, look_on, listen)]
    for thread in threads:
        thread.start()
    for thread in threads[:2]:
        thread.join()


if __name__ == "__main__":
    kit.begin()
    process = multiprocessing.get_context("spawn").Process(target=train)
    process.start()
    process.join()
