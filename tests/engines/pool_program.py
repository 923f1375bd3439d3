"""A healthy pool of reward workers: ``pool_program.py KIND FOLDER``. Two of four score answers, the others are idle; then all are.

KIND is a library and how it starts its workers, see ``KINDS``.
"""

from __future__ import annotations

import concurrent.futures
import hashlib
import multiprocessing
import os
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

KINDS = ("futures-fork", "futures-spawn", "futures-forkserver", "pool-fork", "pool-spawn", "pool-forkserver", "futures-threads")
WORKERS = 4


def score(answer: str, seconds: float) -> float:
    """Some processor time and some waiting, as a sandbox that runs code."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        answer = hashlib.sha256(answer.encode()).hexdigest()
        time.sleep(0.01)
    return float(len(answer) % 2)


def started(kind: str) -> Callable[..., Any]:
    """Gives a function that hands a call to the pool and returns what waits for its answer."""
    library, how = kind.split("-")
    if how == "threads":
        return concurrent.futures.ThreadPoolExecutor(WORKERS).submit
    context: Any = multiprocessing.get_context(how)
    if library == "futures":
        return concurrent.futures.ProcessPoolExecutor(WORKERS, mp_context=context).submit
    pool = context.Pool(WORKERS)
    return lambda call, *arguments: pool.apply_async(call, arguments)


def answer_of(waiting: Any) -> float:
    return float(waiting.result() if hasattr(waiting, "result") else waiting.get())


def train(seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        sum(i * i for i in range(20000))
        time.sleep(0.01)


def main() -> None:
    submit = started(sys.argv[1])
    folder = Path(sys.argv[2])
    for waiting in [submit(score, "warm", 0.1) for _ in range(WORKERS)]:
        answer_of(waiting)
    step = 0
    while True:
        for waiting in [submit(score, f"answer {i}", random.uniform(0.2, 2.0)) for i in range(2)]:
            answer_of(waiting)
        train(random.uniform(0.2, 1.5))
        step += 1
        (folder / "step.part").write_text(str(step))
        os.rename(folder / "step.part", folder / "step")


if __name__ == "__main__":
    main()
