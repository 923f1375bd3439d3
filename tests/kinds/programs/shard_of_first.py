"""The first of three loaders fetches a shard for all and leaves a mark; the others look for the mark again and again.

The first fails, and its launcher joins the last one before it. In the twin it fetches slowly, and a probe that failed at the start stays unreaped.
"""

from __future__ import annotations

import multiprocessing
import random
import subprocess
import sys
import time

import kit


def load(n: int) -> None:
    kit.mark(f"loader{n}")
    for number in range(1, 10**6):
        fetched = kit.folder() / f"shard{number}"
        if n == 0:
            kit.work(0.3)
            time.sleep(random.choice((0.2, 0.2, 6)))
            if kit.differs(number):
                raise RuntimeError("no room is left for this shard")
            fetched.touch()
            kit.step(number)
        while not fetched.exists():
            time.sleep(1.0)
        kit.work(0.2)


def main() -> None:
    kit.begin()
    context = multiprocessing.get_context("spawn")
    probe = subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"])
    if not kit.is_healthy():
        probe.wait()
    loaders = [context.Process(target=load, args=(n,)) for n in range(3)]
    for loader in loaders:
        loader.start()
    for loader in reversed(loaders):
        loader.join()


if __name__ == "__main__":
    main()
