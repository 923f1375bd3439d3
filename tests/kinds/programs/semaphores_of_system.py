"""Four workers share two sandboxes by a semaphore of System V, without the kernel's undoing for who dies.

Once two of them are killed in their sandbox; who starts them anew gives them new work, and all wait for a free one. In the twin they keep it long.
"""

from __future__ import annotations

import ctypes
import os
import signal
import struct
import subprocess
import sys
import time

import kit

LIBC = ctypes.CDLL(None, use_errno=True)
CREATE, PRIVATE, SET_VALUE = 0o1600, 0, 16


def change(semaphore: int, by: int) -> None:
    while LIBC.semop(semaphore, struct.pack("HhH", 0, by, 0), ctypes.c_size_t(1)) < 0:
        if ctypes.get_errno() != 4:
            os._exit(1)


def work(which: int, semaphore: int, first: int) -> None:
    for number in range(first, 10**6):
        change(semaphore, -1)
        if which >= 2 and first == 1 and kit.differs(number):
            os.kill(os.getpid(), signal.SIGKILL)
        kit.work(0.2)
        if kit.is_late(number):
            time.sleep(kit.LONG_S)
        change(semaphore, 1)
        if which == 0:
            kit.step(number)


def start(which: int, semaphore: int, first: int) -> subprocess.Popen[bytes]:
    child = subprocess.Popen([sys.executable, __file__, "work", str(which), str(semaphore), str(first)])
    kit.mark(f"worker{which}", child.pid)
    return child


def main() -> None:
    kit.begin()
    semaphore = LIBC.semget(PRIVATE, 1, CREATE)
    kit.mark("main", semaphore=semaphore)
    LIBC.semctl(semaphore, 0, SET_VALUE, 2)
    children = [start(which, semaphore, 1) for which in range(4)]
    while True:
        pid, _ = os.wait()
        which = [child.pid for child in children].index(pid)
        children[which] = start(which, semaphore, 10)


if __name__ == "__main__":
    work(*(int(word) for word in sys.argv[2:])) if sys.argv[1] == "work" else main()
