"""A driver starts workers and waits for their ends by descriptors of processes (pidfd), all in one poll.

Once a worker opens a named pipe that nobody writes to, for the next prompts. In the twin it works for long instead. A judge waits at a connection.
"""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
import time

import kit


def worker(number: int, step: int) -> None:
    kit.mark(f"worker{number}")
    kit.work(0.3)
    if number == 0 and kit.differs(step):
        with open(kit.fifo("prompts")) as prompts:
            prompts.read()
    elif number == 0 and kit.is_late(step):
        time.sleep(kit.LONG_S / 2)
        kit.work(1.0)
        time.sleep(kit.LONG_S / 2)


def judge(descriptor: int) -> None:
    kit.mark("judge")
    connection = socket.socket(fileno=descriptor)
    while connection.recv(1):
        connection.sendall(b"1")


def main() -> None:
    kit.begin()
    ours, theirs = socket.socketpair()
    subprocess.Popen([sys.executable, __file__, "judge", str(theirs.fileno())], pass_fds=[theirs.fileno()])
    theirs.close()
    for step in range(1, 10**6):
        kit.mark("main")
        workers = [subprocess.Popen([sys.executable, __file__, "worker", str(n), str(step)]) for n in range(3)]
        ends = {os.pidfd_open(one.pid): one for one in workers}
        poll = select.poll()
        for descriptor in ends:
            poll.register(descriptor, select.POLLIN)
        while ends:
            for descriptor, _ in poll.poll():
                poll.unregister(descriptor)
                os.close(descriptor)
                ends.pop(descriptor).wait()
        ours.sendall(b"1")
        ours.recv(1)
        kit.step(step)


if __name__ == "__main__":
    if sys.argv[1] == "worker":
        worker(int(sys.argv[2]), int(sys.argv[3]))
    elif sys.argv[1] == "judge":
        judge(int(sys.argv[2]))
    else:
        main()
