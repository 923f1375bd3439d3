"""Three workers use one simulator in turns, under a lock of multiprocessing; a worker that is late is killed and made anew.

Once it is killed while it has the lock: the new one and the others wait for it. In the twin the simulator works for long.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Lock

import kit


def run(number: int, tasks: Queue[int], results: Queue[int], simulator: Lock) -> None:
    kit.mark(f"worker{number}")
    while True:
        step = tasks.get()
        with simulator:
            if number == 1 and kit.differs(step) and not (kit.folder() / "killed").exists():
                (kit.folder() / "killed").touch()
                time.sleep(600)
            kit.work(0.2)
            if number == 1 and kit.is_late(step):
                for _ in range(20):
                    kit.work()
        results.put(number)


def main() -> None:
    kit.begin()
    context = multiprocessing.get_context("fork")
    simulator, results = context.Lock(), [context.Queue() for _ in range(3)]
    tasks = [context.Queue() for _ in range(3)]

    def start(number: int) -> multiprocessing.Process:
        worker = context.Process(target=run, args=(number, tasks[number], results[number], simulator), daemon=True)
        worker.start()
        return worker

    workers = [start(number) for number in range(3)]
    for step in range(1, 10**6):
        kit.mark("main")
        for one in tasks:
            one.put(step)
        if (kit.folder() / "left").exists() or kit.differs(step):
            until = time.monotonic() + 20
            while not (kit.folder() / "killed").exists() and time.monotonic() < until:
                time.sleep(0.1)
            time.sleep(1)
            os.kill(workers[1].pid or 0, 9)
            workers[1].join()
            workers[1] = start(1)
            tasks[1].put(step)
            kit.mark("main")
        for one in results:
            one.get()
        kit.step(step)


if __name__ == "__main__":
    main()
