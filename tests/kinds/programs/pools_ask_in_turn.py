"""A pool of threads plays episodes and has them scored in a second pool, whose threads have odd answers played once more in the first pool.

Each pool has two threads. Once all four wait: the players for scores, the scorers for replays. In the twin only one scorer asks, and plays are long.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import kit

players, scorers = ThreadPoolExecutor(2, "players"), ThreadPoolExecutor(2, "scorers")


def replay(step: int) -> int:
    if kit.is_late(step):
        time.sleep(random.uniform(6, 12))
    kit.work(0.2)
    return step


def score(step: int, number: int) -> int:
    kit.work(0.3)
    if kit.differs(step):
        time.sleep(1.5)
        return players.submit(replay, step).result()
    return replay(step)


def play(step: int, number: int) -> int:
    kit.work(0.2)
    return scorers.submit(score, step, number).result()


def main() -> None:
    kit.begin()
    subprocess.Popen([sys.executable, __file__, "idle"], stdin=subprocess.PIPE)
    for step in range(1, 10**6):
        kit.mark("main")
        list(players.map(play, [step] * 4, range(4)))
        kit.step(step)


if __name__ == "__main__":
    if sys.argv[1] == "idle":
        kit.mark("logger")
        sys.stdin.read()
    else:
        main()
