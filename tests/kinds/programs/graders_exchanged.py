"""Three graders take answers from one queue of multiprocessing; every third step they are exchanged for new ones, which know the new rules.

Usually they are told to end. Once they are killed: the one that was waiting for an answer had the queue's lock. In the twin the new ones load
their rules for half a minute.
"""

from __future__ import annotations

import multiprocessing
import time
from typing import Any

import kit

FORK = multiprocessing.get_context("fork")


def grade(name: str, number: int, answers: Any, grades: Any) -> None:
    kit.mark(name)
    if kit.is_late(number):
        time.sleep(kit.LONG_S)
    while (answer := answers.get()) is not None:
        kit.work(0.15)
        grades.put(answer % 3)


def main() -> None:
    kit.begin()
    answers, grades = FORK.Queue(), FORK.SimpleQueue()

    def graders(number: int) -> list[Any]:
        made = [FORK.Process(target=grade, args=(f"grader{one}", number, answers, grades)) for one in range(3)]
        for one in made:
            one.start()
        return made

    working = graders(1)
    for number in range(1, 10**6):
        if number % 3 == 0:
            time.sleep(0.5)
            if kit.differs(number):
                for one in working:
                    one.kill()
            else:
                for _ in working:
                    answers.put(None)
            for one in working:
                one.join()
            working = graders(number)
        for answer in range(9):
            answers.put(answer)
        _ = [grades.get() for _ in range(9)]
        kit.step(number)


if __name__ == "__main__":
    main()
