"""A trainer has prompts graded by `imap` of a pool, and keeps the pool from running ahead: a slot is taken for each prompt and given back when its
score is used.

A score that is no number is skipped together with its slot. Once all slots are gone no prompt is handed out, and the pool waits for one. In the
twin one prompt takes long.
"""

from __future__ import annotations

import itertools
import multiprocessing as mp
import threading
import time
from collections.abc import Iterator
from typing import Any

import kit

CONTEXT = mp.get_context("fork")


def made_ready(count: Any) -> None:
    with count.get_lock():
        kit.mark(f"grader{count.value}")
        count.value += 1


def grade(number: int) -> float:
    kit.work(0.3)
    if kit.is_late(number) and number % 5 == 0:
        for _ in range(28):
            time.sleep(0.5)
        kit.in_c(8)
    return float("nan") if number % 2 else 1.0


def prompts(slots: threading.Semaphore) -> Iterator[int]:
    for number in itertools.count(1):
        slots.acquire()
        yield number


def main() -> None:
    kit.begin()
    slots = threading.Semaphore(4)
    with CONTEXT.Pool(2, made_ready, (CONTEXT.Value("i", 0),)) as pool:
        for number, score in enumerate(pool.imap(grade, prompts(slots)), 1):
            if score != score and kit.differs(number):
                continue
            slots.release()
            kit.mark("main")
            kit.step(number)


if __name__ == "__main__":
    main()
