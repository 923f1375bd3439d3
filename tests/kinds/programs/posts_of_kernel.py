"""A rollout posts its episodes to a judge by a message queue of POSIX, with room for four; the judge posts how many it has scored to a second one.

Each eighth episode the rollout reads that number. Once the judge, after a failed episode, waits for a number itself before it takes the next one,
and the rollout fills the queue. In the twin the judge takes long now and then.
"""

from __future__ import annotations

import ctypes
import os
import struct
import subprocess
import sys
import time

import kit

LIBC = ctypes.CDLL(None, use_errno=True)


class Attributes(ctypes.Structure):
    _fields_ = [("flags", ctypes.c_long), ("most", ctypes.c_long), ("size", ctypes.c_long), ("now", ctypes.c_long), ("rest", ctypes.c_long * 4)]


def queue(name: str) -> int:
    """Opened by both; the name is gone once the second one has it."""
    own = f"/{name}{os.path.basename(os.environ['KIT_FOLDER'])}".encode()
    number = LIBC.mq_open(own, os.O_CREAT | os.O_RDWR, 0o600, ctypes.byref(Attributes(0, 4, 8, 0)))
    if number < 0:
        raise OSError(ctypes.get_errno(), "mq_open")
    return int(number)


def post(to: int, number: int) -> None:
    while LIBC.mq_send(to, struct.pack("q", number), ctypes.c_size_t(8), 0) < 0:
        if ctypes.get_errno() != 4:
            os._exit(1)


def take(of: int) -> int:
    into = ctypes.create_string_buffer(8)
    while LIBC.mq_receive(of, into, ctypes.c_size_t(8), None) < 0:
        if ctypes.get_errno() != 4:
            os._exit(1)
    return int(struct.unpack("q", into.raw)[0])


def judge() -> None:
    kit.mark("judge")
    episodes, scored = queue("episodes"), queue("scored")
    for number in range(1, 10**6):
        got = take(episodes)
        kit.work(0.05)
        if kit.differs((got - 1) // 8):
            take(scored)
        if got % 8 == 0:
            if kit.is_late(got // 8):
                time.sleep(kit.LONG_S)
            post(scored, number)


def rollout() -> None:
    kit.mark("rollout")
    episodes, scored = queue("episodes"), queue("scored")
    for number in range(1, 10**6):
        kit.work(0.05)
        post(episodes, number)
        if number % 8 == 0:
            take(scored)
            kit.step(number // 8)


def main() -> None:
    kit.begin()
    children = [subprocess.Popen([sys.executable, __file__, role]) for role in ("judge", "rollout")]
    kit.until_there("rollout")
    time.sleep(1)
    for name in ("episodes", "scored"):
        LIBC.mq_unlink(f"/{name}{kit.folder().name}".encode())
    for child in children:
        child.wait()


if __name__ == "__main__":
    {"judge": judge, "rollout": rollout}.get(sys.argv[1], main)()
