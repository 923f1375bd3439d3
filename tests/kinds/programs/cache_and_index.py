"""Two loaders keep a cache and its index in files, and lock both while they change them; a launcher waits for their batches.

One takes the cache first and then the index, the other the other way round. In the twin both take the cache first, and hold it long.
"""

from __future__ import annotations

import fcntl
import multiprocessing
import time
from contextlib import ExitStack

import kit


def load(which: int, batches: multiprocessing.Queue) -> None:
    kit.mark(f"loader{which}")
    for number in range(1, 10**6):
        names = ["cache", "index"]
        if which == 1 and kit.differs(number):
            names.reverse()
        with ExitStack() as held:
            for name in names:
                file = held.enter_context((kit.folder() / f"{name}.lock").open("w"))
                fcntl.flock(file, fcntl.LOCK_EX)
                time.sleep(1.0)
            kit.work(1.0)
        batches.put(number)


def main() -> None:
    kit.begin()
    context = multiprocessing.get_context("spawn")
    queues = [context.Queue(1) for _ in range(2)]
    for which, queue in enumerate(queues):
        context.Process(target=load, args=(which, queue), daemon=True).start()
    for number in range(1, 10**6):
        for queue in queues:
            queue.get()
        kit.step(number)


if __name__ == "__main__":
    main()
