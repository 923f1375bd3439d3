"""Three rollouts append scores to a list that a manager of multiprocessing keeps; the main process looks every 0.1 s whether a group is complete.

Once a rollout waits for a file that nobody writes. In the twin its episode takes long now and then. Each look is a call that the manager answers.
"""

from __future__ import annotations

import multiprocessing
import time
from pathlib import Path
from typing import Any

import kit


def roll(which: int, scores: Any, rounds: Any) -> None:
    kit.mark(f"rollout{which}")
    done = 0
    while True:
        if rounds.value == done:
            time.sleep(0.05)
            continue
        done += 1
        kit.work(0.2)
        if which == 1 and kit.differs(done):
            kit.mark("rollout1")
            Path(kit.fifo("level")).read_bytes()
        if which == 1 and kit.is_late(done):
            time.sleep(kit.LONG_S)
        scores.append((done, which))


def main() -> None:
    kit.begin()
    spawn = multiprocessing.get_context("spawn")
    with spawn.Manager() as manager:
        scores, rounds = manager.list(), spawn.Value("i", 0)
        for which in range(3):
            spawn.Process(target=roll, args=(which, scores, rounds), daemon=True).start()
        for step in range(1, 10**6):
            rounds.value = step
            while sum(number == step for number, _ in scores) < 3:
                time.sleep(0.1)
            kit.mark("main")
            kit.step(step)


if __name__ == "__main__":
    main()
