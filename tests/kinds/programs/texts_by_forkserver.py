"""A trainer has texts cut into tokens by a pool of two processes, which a server of multiprocessing forks for it (`forkserver`).

Once a worker opens its table, a named pipe that nobody writes: its parent is the server, which knows nothing, and the trainer waits for the pool. In
the twin a table takes long. A recorder is idle.
"""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import time

import kit


def cut(task: tuple[int, int]) -> int:
    number, which = task
    kit.work(0.2)
    if which == 1 and kit.is_late(number):
        time.sleep(kit.LONG_S)
    if which == 1 and kit.differs(number):
        kit.mark("cutter")
        with open(kit.fifo("table")) as table:
            table.read()
    return number


def main() -> None:
    with multiprocessing.get_context("forkserver").Pool(2) as pool:
        for number in range(1, 10**6):
            kit.mark("main")
            pool.map(cut, [(number, which) for which in range(3)], 1)
            kit.step(number)


if __name__ == "__main__":
    if sys.argv[1] == "recorder":
        kit.mark("recorder")
        sys.stdin.read()
    else:
        kit.begin()
        recorder = subprocess.Popen([sys.executable, __file__, "recorder"], stdin=subprocess.PIPE)
        kit.until_there("recorder")
        main()
