"""A trainer and a judge talk by a message queue of System V: questions have the type 1, answers the type 2.

Once the trainer sends its question with the type 3, which the judge does not take, and waits for the answer. In the twin all types are right, and the
judge takes long now and then. A rollout waits at a queue of its own.
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
CREATE, PRIVATE, REMOVE = 0o1600, 0, 0


def send(queue: int, kind: int, number: int) -> None:
    LIBC.msgsnd(queue, struct.pack("<qq", kind, number), 8, 0)


def receive(queue: int, kind: int) -> int:
    into = ctypes.create_string_buffer(16)
    while LIBC.msgrcv(queue, into, 8, ctypes.c_long(kind), 0) < 0:
        if ctypes.get_errno() != 4:
            sys.exit(1)
    return int(struct.unpack("<qq", into.raw)[1])


def judge(queue: int) -> None:
    kit.mark("judge")
    while True:
        number = receive(queue, 1)
        kit.work(0.3)
        if kit.is_late(number):
            time.sleep(kit.LONG_S)
        send(queue, 2, number)


def rollout() -> None:
    kit.mark("rollout")
    while sys.stdin.readline():
        kit.work(0.1)
        print("1", flush=True)


def main() -> None:
    kit.begin()
    queue = LIBC.msgget(PRIVATE, CREATE)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    rollouts = subprocess.Popen([sys.executable, __file__, "rollout"], **pipes)
    subprocess.Popen([sys.executable, __file__, "judge", str(queue)])
    for step in range(1, 10**6):
        kit.mark("main", queue=queue)
        rollouts.stdin.write("1\n")
        rollouts.stdin.flush()
        rollouts.stdout.readline()
        send(queue, 3 if kit.differs(step) else 1, step)
        if receive(queue, 2) != step:
            os._exit(1)
        kit.step(step)


if __name__ == "__main__":
    if sys.argv[1] == "judge":
        judge(int(sys.argv[2]))
    elif sys.argv[1] == "rollout":
        rollout()
    else:
        main()
