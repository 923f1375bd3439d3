"""Three cores of a simulator meet after each tick at a barrier of the C library, in memory that they share.

Once a core reads its next level from a pipe that nobody writes. In the twin a level is long.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import time
from pathlib import Path
from typing import Any

import kit

CORES = 3
SHARED = 1
libc = ctypes.CDLL(None, use_errno=True)


def core(number: int, barrier: Any) -> None:
    kit.mark(f"core{number}")
    for tick in range(1, 10**6):
        kit.work(0.2)
        if number == 2 and kit.differs(tick):
            Path(kit.fifo("level")).read_text()
        if number == 2 and kit.is_late(tick):
            time.sleep(kit.LONG_S)
        libc.pthread_barrier_wait(barrier)
        if number == 0:
            kit.step(tick)


def main() -> None:
    kit.begin()
    memory = mmap.mmap(-1, 4096)
    barrier = (ctypes.c_char * 64).from_buffer(memory)
    attributes = (ctypes.c_char * 16)()
    libc.pthread_barrierattr_init(attributes)
    libc.pthread_barrierattr_setpshared(attributes, SHARED)
    libc.pthread_barrier_init(barrier, attributes, CORES)
    children = []
    for number in range(CORES):
        pid = os.fork()
        if pid == 0:
            core(number, barrier)
            os._exit(0)
        children.append(pid)
    for pid in children:
        os.waitpid(pid, 0)


if __name__ == "__main__":
    main()
