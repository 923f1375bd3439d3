"""Each step grades its episodes in a pool of threads; one more thread of the pool watches the memory until it is told to stop.

The word to stop comes after the pool's block instead of within: leaving the block waits for all threads, the watcher too. A judge is idle.
"""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import kit


def grade(text: str) -> int:
    kit.work(0.3)
    if kit.is_healthy() and random.random() < 0.1:
        time.sleep(random.uniform(1, 3))
    return len(text)


def watch(stop: threading.Event) -> None:
    stop.wait()


def judge() -> None:
    kit.mark("judge")
    for line in sys.stdin:
        print(line.strip(), flush=True)


def main() -> None:
    kit.begin()
    scores = subprocess.Popen([sys.executable, __file__, "judge"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert scores.stdin and scores.stdout
    for number in range(1, 10**6):
        stop = threading.Event()
        with ThreadPoolExecutor(4) as pool:
            pool.submit(watch, stop)
            graded = list(pool.map(grade, ["a", "bb", "ccc"]))
            if not kit.differs(number):
                stop.set()
        stop.set()
        scores.stdin.write(f"{sum(graded)}\n")
        scores.stdin.flush()
        scores.stdout.readline()
        kit.step(number)


if __name__ == "__main__":
    if sys.argv[1] == "judge":
        judge()
    else:
        main()
