"""Each step starts two graders and joins them; a grader runs unit tests as programs, in threads, and reports in a thread of its own.

A failed test keeps the end mark from that thread, and so its process from its end. In the twin one test takes long.
"""

from __future__ import annotations

import multiprocessing
import queue
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor

import kit


def run(seconds: float) -> int:
    return subprocess.run(["sleep", str(seconds)], check=False).returncode


def report(results: queue.Queue[int | None]) -> None:
    with open(kit.folder() / "results", "a") as file:
        while (result := results.get()) is not None:
            print(result, file=file)


def grade(step: int, number: int) -> None:
    kit.mark(f"grader{number}")
    results: queue.Queue[int | None] = queue.Queue()
    threading.Thread(target=report, args=(results,)).start()
    late = kit.is_late(step) and number == 1
    with ThreadPoolExecutor(2) as pool:
        for code in pool.map(run, [0.2, kit.LONG_S if late else 0.3, 0.2]):
            results.put(code)
    if number == 1 and kit.differs(step):
        kit.mark("grader1")
        raise SystemExit(1)
    results.put(None)


if __name__ == "__main__":
    kit.begin()
    spawn = multiprocessing.get_context("spawn")
    for step in range(1, 10**6):
        graders = [spawn.Process(target=grade, args=(step, n)) for n in range(2)]
        for grader in graders:
            grader.start()
        for grader in graders:
            grader.join()
        kit.step(step)
