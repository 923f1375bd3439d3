"""Two programs share cores and memory by two semaphores, and take both before they run a test."""

from __future__ import annotations

import multiprocessing
import time
from multiprocessing.synchronize import BoundedSemaphore

import kit


def run_tests(name: str, first: BoundedSemaphore, second: BoundedSemaphore) -> None:
    for step in range(1, 10**6):
        a, b = (second, first) if name == "right" and kit.differs(step) else (first, second)
        if kit.differs(step):
            meet(name, step)
        kit.mark(name)
        with a:
            time.sleep(0.5)
            with b:
                kit.work(0.4)
        if name == "left":
            kit.step(step)


def meet(name: str, step: int) -> None:
    """Both begin the step at the same moment."""
    kit.mark(f"{name}-{step}")
    kit.until_there(f"{'left' if name == 'right' else 'right'}-{step}")


if __name__ == "__main__":
    kit.begin()
    spawn = multiprocessing.get_context("spawn")
    cores, memory = spawn.BoundedSemaphore(1), spawn.BoundedSemaphore(1)
    pair = [spawn.Process(target=run_tests, args=(name, cores, memory)) for name in ("left", "right")]
    for process in pair:
        process.start()
    for process in pair:
        process.join()
