"""Three workers put large results into one simple queue of multiprocessing, each under the queue's lock for writing.

Once a worker is killed in the middle of a result: who reads waits for the rest of it, the others for the lock. In the twin a worker works long
before it puts its result.
"""

from __future__ import annotations

import multiprocessing
import time
from multiprocessing.connection import Connection
from multiprocessing.queues import SimpleQueue

import kit

spawn = multiprocessing.get_context("spawn")


def worker(index: int, tasks: Connection, results: SimpleQueue) -> None:
    kit.mark(f"worker{index}")
    while True:
        number = tasks.recv()
        kit.work(0.3)
        if index == 0 and kit.is_late(number):
            time.sleep(kit.LONG_S)
        if index != 0 and kit.differs(number):
            time.sleep(1)
        results.put(bytes(1 << 20))


def main() -> None:
    kit.begin()
    results = spawn.SimpleQueue()
    pipes = [spawn.Pipe() for _ in range(3)]
    workers = [spawn.Process(target=worker, args=(index, pipes[index][1], results)) for index in range(3)]
    for one in workers:
        one.start()
    for number in range(1, 10**6):
        for mine, _ in pipes:
            mine.send(number)
        if kit.differs(number):
            time.sleep(2.5)
            workers[0].kill()
        for _ in range(3):
            results.get()
            kit.work(0.1)
        kit.step(number)


if __name__ == "__main__":
    main()
