"""A trainer serves prompts to its workers by a manager of multiprocessing that runs in a thread of its own; its main thread reads their scores.

Once the method that gives a prompt opens a source that is a pipe without a writer. In the twin the source is slow.
"""

from __future__ import annotations

import multiprocessing
import threading
import time
from multiprocessing.connection import Connection
from multiprocessing.managers import BaseManager
from pathlib import Path
from typing import Any

import kit


class Prompts:
    def __init__(self) -> None:
        self.given = 0

    def give(self) -> int:
        self.given += 1
        step = 1 + self.given // 2
        if kit.differs(step):
            Path(kit.fifo("source")).read_text()
        if kit.is_late(step):
            time.sleep(kit.LONG_S)
        return step


class Manager(BaseManager):
    pass


def worker(number: int, place: str, scores: Connection) -> None:
    Manager.register("prompts")
    manager: Any = Manager(address=place, authkey=b"kinds")
    manager.connect()
    prompts = manager.prompts()
    kit.mark(f"worker{number}")
    while True:
        step = prompts.give()
        kit.work(0.3)
        scores.send(step)


def main() -> None:
    kit.begin()
    here = Prompts()
    Manager.register("prompts", callable=lambda: here)
    place = str(kit.folder() / "prompts.sock")
    server = Manager(address=place, authkey=b"kinds").get_server()
    threading.Thread(target=server.serve_forever, name="prompts", daemon=True).start()
    context = multiprocessing.get_context("spawn")
    ends = []
    for number in range(2):
        mine, its = context.Pipe()
        context.Process(target=worker, args=(number, place, its), daemon=True).start()
        its.close()
        ends.append(mine)
    for step in range(1, 10**6):
        for end in ends:
            end.recv()
        kit.work(0.2)
        kit.step(step)


if __name__ == "__main__":
    main()
