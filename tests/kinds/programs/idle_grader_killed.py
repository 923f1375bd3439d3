"""A trainer has answers graded by multiprocessing's pool of three. A guard of memory may kill a grader between two batches; the pool makes another.

The killed one was idle, and waited for a task with the lock of the tasks in hand: nobody takes a task any more. In the twin it kills none, and one
answer is long.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from pathlib import Path

import kit

spawn = multiprocessing.get_context("spawn")


def grade(task: tuple[int, int]) -> int:
    number, index = task
    kit.work(0.2)
    if index == 0 and kit.is_late(number):
        time.sleep(kit.LONG_S)
    return os.getpid()


def main() -> None:
    kit.begin()
    with spawn.Pool(3) as pool:
        for number in range(1, 10**6):
            if kit.differs(number):
                time.sleep(0.5)
                for process in list(pool._pool):
                    # the one that reads has the lock
                    if "read" in Path(f"/proc/{process.pid}/wchan").read_text():
                        os.kill(process.pid, signal.SIGKILL)
                        break
                time.sleep(1.5)
            for index, pid in enumerate(sorted(set(pool.map(grade, [(number, i) for i in range(6)], chunksize=1)))):
                kit.mark(f"grader{index}", pid)
            kit.step(number)


if __name__ == "__main__":
    main()
