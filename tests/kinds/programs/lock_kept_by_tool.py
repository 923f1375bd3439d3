"""Two workers use a folder of packages by turns, under a lock on a file that each opens, locks and closes again.

Once a worker starts a tool while it has the lock, and the tool inherits the file and goes on for ever: the lock stays, though the worker
closed it. In the twin the tool inherits nothing, and a turn is long.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time

import kit


def worker(name: str) -> None:
    kit.mark(name)
    for step in range(1, 10**6):
        lock = os.open(kit.folder() / "packages.lock", os.O_RDWR | os.O_CREAT)
        fcntl.flock(lock, fcntl.LOCK_EX)
        kit.work(0.2)
        if name == "worker0" and kit.differs(step):
            tool = subprocess.Popen([sys.executable, __file__, "tool"], pass_fds=(lock,))
            kit.mark("tool", pid=tool.pid)
        if name == "worker0" and kit.is_late(step):
            time.sleep(kit.LONG_S)
        os.close(lock)
        kit.work(0.2)
        if name == "worker0":
            kit.step(step)


def main() -> None:
    kit.begin()
    workers = [subprocess.Popen([sys.executable, __file__, f"worker{n}"]) for n in range(2)]
    for one in workers:
        one.wait()


if __name__ == "__main__":
    if sys.argv[1] == "tool":
        time.sleep(100_000)
    elif sys.argv[1].startswith("worker"):
        worker(sys.argv[1])
    else:
        main()
