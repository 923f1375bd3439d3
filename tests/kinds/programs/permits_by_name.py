"""Three workers of a job share one simulator by a semaphore of POSIX that has a name, opened from C; each gives it back after its episode.

Once a worker has it and waits for a file that nobody writes. In the twin an episode takes long.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time
from pathlib import Path

import kit

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.sem_open.restype = ctypes.c_void_p
LIBC.sem_wait.argtypes = LIBC.sem_post.argtypes = [ctypes.c_void_p]


def opened() -> int:
    found = LIBC.sem_open(f"/{kit.folder().name}".encode(), os.O_CREAT, 0o600, 1)
    if not found:
        raise OSError(ctypes.get_errno(), "sem_open")
    return int(found)


def work(which: int) -> None:
    kit.mark(f"worker{which}")
    permit = opened()
    for number in range(1, 10**6):
        while LIBC.sem_wait(permit) < 0:
            pass
        kit.work(0.1)
        if which == 1 and kit.differs(number):
            kit.mark("worker1")
            Path(kit.fifo("scene")).read_bytes()
        if which == 1 and kit.is_late(number):
            time.sleep(kit.LONG_S)
        LIBC.sem_post(permit)
        time.sleep(0.05)
        if which == 0:
            kit.step(number)


def main() -> None:
    kit.begin()
    opened()
    children = [subprocess.Popen([sys.executable, __file__, "work", str(which)]) for which in range(3)]
    kit.until_there("worker2")
    time.sleep(1)
    LIBC.sem_unlink(f"/{kit.folder().name}".encode())
    for child in children:
        child.wait()


if __name__ == "__main__":
    work(int(sys.argv[2])) if sys.argv[1] == "work" else main()
