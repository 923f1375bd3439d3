"""A pool of graders gets its prompts from a generator, which reads a table under a lock: it runs in the pool's own thread.

Once the main thread, too, holds that lock while it waits for the next score. In the twin the generator pauses long between two prompts.
"""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Iterator

import kit

LOCK = threading.Lock()
PERIOD = 4


def grade(prompt: int) -> int:
    kit.work(0.1)
    return prompt


def prompts(allowed: threading.Semaphore) -> Iterator[int]:
    for number in range(1, 10**7):
        allowed.acquire()
        if number % PERIOD == 0 and kit.is_late(number // PERIOD):
            time.sleep(kit.LONG_S)
        with LOCK:
            prompt = number
        yield prompt


def main() -> None:
    kit.begin()
    allowed = threading.Semaphore(2)
    with multiprocessing.get_context("fork").Pool(3) as pool:
        scores = pool.imap(grade, prompts(allowed))
        for step in range(1, 10**6):
            for _ in range(PERIOD):
                next(scores)
                allowed.release()
            kit.mark("main")
            if kit.differs(step):
                with LOCK:
                    for _ in range(PERIOD):
                        next(scores)
                        allowed.release()
            kit.step(step)


if __name__ == "__main__":
    main()
