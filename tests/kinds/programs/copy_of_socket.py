"""A trainer reads episodes from a rollout over a pair of sockets. The rollout has a monitor as its child, which inherits the rollout's end.

The rollout is killed as the kernel does when memory is short. The monitor lives on, reads its own pipe and holds the socket open: no end is seen.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time

import kit


def monitor() -> None:
    kit.mark("monitor")
    with open(kit.fifo("orders"), "r+b", buffering=0) as orders:
        orders.readline()


def play(fd: int) -> None:
    kit.mark("rollout")
    subprocess.Popen([sys.executable, __file__, "monitor"], close_fds=False)
    kit.until_there("monitor")
    with socket.socket(fileno=fd) as peer, peer.makefile("rwb") as lines:
        os.set_inheritable(fd, True)
        for line in lines:
            kit.work(0.3)
            if kit.differs(int(line)):
                os.kill(os.getpid(), signal.SIGKILL)
            if kit.is_healthy() and random.random() < 0.15:
                time.sleep(random.uniform(1, 3.5))
            lines.write(line)
            lines.flush()


def judge() -> None:
    kit.mark("judge")
    for line in sys.stdin:
        kit.work(0.2)
        print(line.strip(), flush=True)


def train(peer: socket.socket, scores: subprocess.Popen[str]) -> None:
    assert scores.stdin and scores.stdout
    with peer, peer.makefile("rwb") as lines:
        for step in range(1, 10**6):
            lines.write(f"{step}\n".encode())
            lines.flush()
            line = lines.readline().decode()
            if not line:
                raise EOFError("the rollout has closed its end")
            scores.stdin.write(line)
            scores.stdin.flush()
            scores.stdout.readline()
            kit.step(step)


def main() -> None:
    kit.begin()
    ours, theirs = socket.socketpair()
    theirs.set_inheritable(True)
    subprocess.Popen([sys.executable, __file__, "rollout", str(theirs.fileno())], pass_fds=[theirs.fileno()])
    theirs.close()
    scores = subprocess.Popen([sys.executable, __file__, "judge"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    train(ours, scores)


if __name__ == "__main__":
    match sys.argv[1]:
        case "monitor":
            monitor()
        case "rollout":
            play(int(sys.argv[2]))
        case "judge":
            judge()
        case _:
            main()
