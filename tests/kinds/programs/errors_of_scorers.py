"""Answers are scored in multiprocessing's pool; a scorer tells by an error of its own that a tool took too long, and the answer then has no score.

That error cannot be made again from its pickle: the pool's thread that reads results ends with it, and the trainer waits for the rest of its batch.
"""

from __future__ import annotations

import multiprocessing
import os

import kit


class ToolTooSlow(Exception):
    def __init__(self, tool: str, seconds: float) -> None:
        super().__init__(f"{tool} took {seconds:.1f} s")


class NoScore(Exception):
    pass


def ready(count: object) -> None:
    with count:  # type: ignore[attr-defined]
        count.value += 1  # type: ignore[attr-defined]
        kit.mark(f"scorer{count.value}")  # type: ignore[attr-defined]


def score(task: tuple[int, int]) -> float:
    number, answer = task
    took = kit.work(0.6)
    if answer == 2 and kit.differs(number):
        raise ToolTooSlow("python", took)
    if answer == 2 and number % 2:
        raise NoScore(f"pid {os.getpid()}: {took:.1f} s")
    return took


def main() -> None:
    kit.begin()
    context = multiprocessing.get_context("fork")
    with context.Pool(2, ready, (context.Value("i", 0),)) as pool:
        for number in range(1, 10**6):
            for one in [pool.apply_async(score, ((number, answer),)) for answer in range(5)]:
                try:
                    one.get()
                except (NoScore, ToolTooSlow):
                    pass
            kit.work(0.3)
            kit.step(number)


if __name__ == "__main__":
    main()
