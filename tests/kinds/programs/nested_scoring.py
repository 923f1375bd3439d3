"""Answers are scored in a pool of threads; each score asks the pool for its parts."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import kit

OUTER = ThreadPoolExecutor(3, thread_name_prefix="score")
INNER = ThreadPoolExecutor(3, thread_name_prefix="part")


def score_part(step: int) -> float:
    return kit.work(0.3)


def score_answer(step: int) -> float:
    kit.work(0.2)
    parts = OUTER if kit.differs(step) else INNER
    kit.mark("main")
    return sum(part.result() for part in [parts.submit(score_part, step) for _ in range(2)])


if __name__ == "__main__":
    kit.begin()
    for step in range(1, 10**6):
        scores = [OUTER.submit(score_answer, step) for _ in range(6)]
        rewards = [score.result() for score in scores]
        kit.step(step)
