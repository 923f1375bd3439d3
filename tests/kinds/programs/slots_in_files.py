"""Four workers share two licences by lock files: who finds neither free waits in `flock` of one of them, chosen by its number.

Once a worker starts its tool in a session of its own, the tool keeps the lock's descriptor and outlives the worker's round, as it waits for orders.
In the twin a round is long.
"""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import subprocess
import sys
import time
from multiprocessing.connection import Connection

import kit

spawn = multiprocessing.get_context("spawn")


def worker(index: int, tasks: Connection) -> None:
    kit.mark(f"worker{index}")
    while True:
        number = tasks.recv()
        lock = os.open(kit.folder() / f"licence{index % 2}", os.O_RDWR | os.O_CREAT)
        fcntl.flock(lock, fcntl.LOCK_EX)
        kit.work(0.2)
        if index == 1 and kit.is_late(number):
            time.sleep(kit.LONG_S)
        if index == 1 and kit.differs(number):
            os.set_inheritable(lock, True)
            subprocess.Popen([sys.executable, __file__, "tool"], close_fds=False, start_new_session=True, stdin=subprocess.DEVNULL)
            kit.until_there("tool")
        os.close(lock)
        tasks.send(number)


def tool() -> None:
    kit.mark("tool")
    with open(kit.fifo("orders")) as orders:
        orders.read()


def main() -> None:
    kit.begin()
    pipes = [spawn.Pipe() for _ in range(4)]
    for index, (_, theirs) in enumerate(pipes):
        spawn.Process(target=worker, args=(index, theirs), daemon=True).start()
    for number in range(1, 10**6):
        for mine, _ in pipes:
            mine.send(number)
        for mine, _ in pipes:
            mine.recv()
        kit.step(number)


if __name__ == "__main__":
    tool() if sys.argv[1:] == ["tool"] else main()
