"""Three workers, each with a pipe of its own; every step one of them is asked and its answer awaited, the others wait for questions."""

from __future__ import annotations

import multiprocessing
import threading
from multiprocessing.connection import Connection

import kit


def answer_questions(name: str, questions: Connection) -> None:
    kit.mark(name)
    cache = threading.Lock()
    while True:
        step = questions.recv()
        kit.mark(name)
        with cache:
            questions.send(look_up(step, cache))


def look_up(step: int, cache: threading.Lock) -> float:
    seconds = kit.work()
    if kit.differs(step):
        with cache:
            return 0.0
    return seconds


if __name__ == "__main__":
    kit.begin()
    ends = []
    for n in range(3):
        mine, its = multiprocessing.Pipe()
        multiprocessing.Process(target=answer_questions, args=(f"worker{n}", its), daemon=True).start()
        ends.append(mine)
    for step in range(1, 10**6):
        kit.mark("main")
        ends[1 if step >= kit.STEP and not kit.is_healthy() else step % 3].send(step)
        ends[1 if step >= kit.STEP and not kit.is_healthy() else step % 3].recv()
        kit.step(step)
