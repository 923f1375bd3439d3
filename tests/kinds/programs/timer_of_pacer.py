"""A pacer tells the rollouts when to begin, by a timer of the kernel (timerfd) that it reads. The trainer reads a line of it for each round.

Once it sets the timer to a moment of the wall clock, on the clock that counts from the start of the machine: decades ahead. In the twin it sets it
to a moment that comes, now and then a late one. A logger waits for its next line.
"""

from __future__ import annotations

import ctypes
import os
import struct
import subprocess
import sys
import time

import kit

MONOTONIC = 1
ABSOLUTE = 1


def pace() -> None:
    libc = ctypes.CDLL(None)
    timer = libc.timerfd_create(MONOTONIC, 0)
    kit.mark("pacer")
    number = 0
    while True:
        number += 1
        now = time.time() if kit.differs(number) else time.monotonic()
        later = kit.LONG_S if kit.is_late(number) else 0.5
        at = now + later
        libc.timerfd_settime(timer, ABSOLUTE, struct.pack("<qqqq", 0, 0, int(at), int(at % 1 * 1e9)), None)
        os.read(timer, 8)
        print(number, flush=True)


def log() -> None:
    kit.mark("logger")
    for line in sys.stdin:
        print(line.strip(), flush=True)


def main() -> None:
    kit.begin()
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    pacer, logger = (subprocess.Popen([sys.executable, __file__, name], **pipes) for name in ("pace", "log"))
    for step in range(1, 10**6):
        kit.mark("main")
        pacer.stdout.readline()
        kit.work(0.3)
        logger.stdin.write("1\n")
        logger.stdin.flush()
        logger.stdout.readline()
        kit.step(step)


if __name__ == "__main__":
    {"pace": pace, "log": log}.get(sys.argv[1], main)()
