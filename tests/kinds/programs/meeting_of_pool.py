"""Workers of a pool meet once when they begin, at a barrier, so that all have loaded before the first task.

Once a worker dies; the pool makes another, which goes to the barrier where nobody comes any more, and its task is lost. In the twin none dies, and
a task takes long now and then. A judge is idle.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import time
from typing import Any

import kit

WORKERS = 3


def begin(barrier: Any) -> None:
    kit.mark("late" if barrier.broken or (kit.folder() / "left").exists() else f"worker{os.getpid()}")
    barrier.wait()


def play(step: int) -> int:
    kit.work(0.2)
    if step % WORKERS == 0 and kit.differs(step // WORKERS):
        os._exit(1)
    if step % WORKERS == 0 and kit.is_late(step // WORKERS):
        time.sleep(kit.LONG_S)
    return step


def judge() -> None:
    kit.mark("judge")
    while sys.stdin.readline():
        print("1", flush=True)


def main() -> None:
    kit.begin()
    judging = subprocess.Popen([sys.executable, __file__, "judge"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    context = multiprocessing.get_context("spawn")
    with context.Pool(WORKERS, begin, (context.Barrier(WORKERS),)) as pool:
        for step in range(1, 10**6):
            kit.mark("main")
            judging.stdin.write("1\n")
            judging.stdin.flush()
            judging.stdout.readline()
            pool.map(play, range(step * WORKERS, (step + 1) * WORKERS), chunksize=1)
            kit.step(step)


if __name__ == "__main__":
    if sys.argv[1] == "judge":
        judge()
    else:
        main()
