"""A trainer starts an environment for each round, plays with it over pipes, asks it by SIGTERM to end, and waits until it has. A judge is idle.

Once a thread starts it that has blocked its signals, as one does whose program handles them in the main thread: a child inherits what is blocked, and
never hears of it. It waits for the next move. In the twin it hears, and saves for some seconds before it ends.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import kit


def save(*_: object) -> None:
    time.sleep(random.uniform(1, 7))
    sys.exit()


def environment() -> None:
    signal.signal(signal.SIGTERM, save)
    kit.mark("environment")
    for line in sys.stdin:
        kit.work(0.2)
        print(line.strip(), flush=True)


def start(number: int) -> subprocess.Popen[str]:
    if kit.differs(number):
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    return subprocess.Popen([sys.executable, __file__, "environment"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def main() -> None:
    judge = subprocess.Popen([sys.executable, __file__, "judge"], stdin=subprocess.PIPE)
    kit.until_there("judge")
    starters = ThreadPoolExecutor(1)
    for number in range(1, 10**6):
        child: Any = starters.submit(start, number).result()
        for move in range(3):
            child.stdin.write(f"{move}\n")
            child.stdin.flush()
            child.stdout.readline()
        child.terminate()
        child.wait()
        kit.mark("main")
        kit.step(number)
    judge.wait()


if __name__ == "__main__":
    match sys.argv[1]:
        case "judge":
            kit.mark("judge")
            sys.stdin.read()
        case "environment":
            environment()
        case _:
            kit.begin()
            main()
