"""A trainer starts an environment for each round, plays over a connection, asks it by SIGTERM to end, and waits until it has. A judge is idle.

The environment's handler only sets a flag, which is read between two connections: where no further one comes it never is. In the twin the
handler saves what was played, for some seconds, and ends.
"""

from __future__ import annotations

import random
import signal
import socket
import subprocess
import sys
import time

import kit

ends = False


def end(*_: object) -> None:
    global ends
    ends = True


def save(*_: object) -> None:
    time.sleep(random.uniform(1, 7))
    sys.exit()


def environment(number: int) -> None:
    path = kit.folder() / f"environment{number}"
    signal.signal(signal.SIGTERM, end if kit.differs(number) else save)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        kit.mark("environment")
        while not ends:
            connection, _ = listening.accept()
            with connection:
                while connection.recv(1):
                    kit.work(0.2)
                    connection.sendall(b"!")


def judge() -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(kit.folder() / "judge"))
        listening.listen()
        kit.mark("judge")
        listening.accept()


def main() -> None:
    kit.begin()
    subprocess.Popen([sys.executable, __file__, "judge"])
    kit.until_there("judge")
    for number in range(1, 10**6):
        child = subprocess.Popen([sys.executable, __file__, "environment", str(number)])
        while not (kit.folder() / f"environment{number}").exists():
            time.sleep(0.05)
        time.sleep(0.2)
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(kit.folder() / f"environment{number}"))
            for _ in range(3):
                connection.sendall(b"?")
                connection.recv(1)
        time.sleep(0.5)
        child.terminate()
        child.wait()
        kit.step(number)


if __name__ == "__main__":
    match sys.argv[1]:
        case "judge":
            judge()
        case "environment":
            environment(int(sys.argv[2]))
        case _:
            main()
