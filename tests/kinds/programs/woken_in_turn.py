"""Two threads wait at one condition, a generator for prompts and a watcher for new weights; the main thread waits for answers.

Where only one of them is woken and it is the watcher, that one waits again and nobody tells the generator. A judge is a process beside.
"""

from __future__ import annotations

import multiprocessing
import queue
import threading
import time
from multiprocessing.connection import Connection

import kit


class Engine:
    def __init__(self) -> None:
        self.change = threading.Condition()
        self.prompts: list[int] = []
        self.answers: queue.Queue[int] = queue.Queue()
        self.version = self.seen = 0

    def generate(self) -> None:
        while True:
            with self.change:
                while not self.prompts:
                    self.change.wait()
                prompt = self.prompts.pop()
            kit.work(0.3)
            self.answers.put(prompt)

    def watch_weights(self) -> None:
        while True:
            with self.change:
                while self.version == self.seen:
                    self.change.wait()
                self.seen = self.version
            time.sleep(0.1)

    def ask(self, step: int) -> int:
        with self.change:
            self.prompts.append(step)
            if kit.differs(step):
                self.change.notify()
            else:
                self.change.notify_all()
        return self.answers.get()

    def take_weights(self, version: int) -> None:
        with self.change:
            self.version = version
            self.change.notify_all()


def judge(orders: Connection) -> None:
    kit.mark("judge")
    while True:
        orders.send(0.5 * orders.recv())


def main() -> None:
    kit.begin()
    orders, of_judge = multiprocessing.Pipe()
    multiprocessing.get_context("spawn").Process(target=judge, args=(of_judge,), daemon=True).start()
    kit.until_there("judge")
    engine = Engine()
    for work in (engine.watch_weights, engine.generate):
        threading.Thread(target=work, name=work.__name__, daemon=True).start()
    for step in range(1, 10**6):
        orders.send(engine.ask(step))
        orders.recv()
        kit.work(0.3)
        if not kit.differs(step):
            engine.take_weights(step)
        kit.step(step)


if __name__ == "__main__":
    main()
