"""A scheduler writes large tasks into a pipe of each of its two forked workers, in turn; a worker answers with a short line in a pipe of its own.

Once a worker is killed before it reads: the other worker was forked later and has a copy of the reading end, so the write neither ends nor fails. In
the twin a worker reads late.
"""

from __future__ import annotations

import multiprocessing
import time
from multiprocessing.connection import Connection

import kit

fork = multiprocessing.get_context("fork")


def worker(index: int, tasks: Connection, answers: Connection) -> None:
    kit.mark(f"worker{index}")
    for number in range(1, 10**6):
        if index == 0 and kit.is_late(number):
            time.sleep(kit.LONG_S)
        tasks.recv_bytes()
        kit.work(0.3)
        answers.send(number)


def main() -> None:
    kit.begin()
    tasks = [fork.Pipe(duplex=False) for _ in range(2)]
    answers = [fork.Pipe(duplex=False) for _ in range(2)]
    workers = [fork.Process(target=worker, args=(index, tasks[index][0], answers[index][1])) for index in range(2)]
    for one in workers:
        one.start()
    for reading, _ in tasks:
        reading.close()
    for number in range(1, 10**6):
        for index in range(2):
            if index == 0 and kit.differs(number):
                workers[0].kill()
            tasks[index][1].send_bytes(bytes(1 << 20))
        for reading, _ in answers:
            reading.recv()
        kit.step(number)


if __name__ == "__main__":
    main()
