"""A buffer in memory: a sampler thread adds episodes and counts them under a lock of statistics, a learner waits for enough of them by a condition.

Once the learner holds the lock of statistics while it waits. In the twin it lets it go, and the sampler is slow now and then. A child simulates.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import kit

statistics, arrived = threading.Lock(), threading.Condition()
episodes: list[int] = []
counted = 0


def sample(simulator: subprocess.Popen[str]) -> None:
    global counted
    for step in range(1, 10**9):
        simulator.stdin.write("1\n")
        simulator.stdin.flush()
        simulator.stdout.readline()
        if kit.is_late(step):
            time.sleep(kit.LONG_S)
        with statistics:
            counted += 1
        with arrived:
            episodes.append(step)
            arrived.notify()


def take() -> int:
    with arrived:
        while not episodes:
            arrived.wait()
        return episodes.pop()


def simulate() -> None:
    kit.mark("simulator")
    while sys.stdin.readline():
        kit.work(0.3)
        print("1", flush=True)


def main() -> None:
    kit.begin()
    simulator = subprocess.Popen([sys.executable, __file__, "simulate"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    threading.Thread(target=sample, args=(simulator,), name="sampler", daemon=True).start()
    for step in range(1, 10**6):
        kit.mark("main")
        if kit.differs(step):
            with statistics:
                episodes.clear()
                take()
        else:
            take()
        kit.work(0.1)
        kit.step(step)


if __name__ == "__main__":
    if sys.argv[1] == "simulate":
        simulate()
    else:
        main()
