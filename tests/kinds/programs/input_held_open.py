"""A trainer gives each batch to a packer of its own, which reads its input to the end, and reads the packed batch back.

Beside it lives a logger, which reads a pipe that nobody writes. Started between the pipe and its close, it holds the input of the packer open.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time

import kit


def pack() -> None:
    kit.mark("packer")
    text = sys.stdin.read()
    kit.work(0.3)
    if kit.is_healthy() and random.random() < 0.2:
        time.sleep(random.uniform(1, 3))
    print(len(text), flush=True)


def log() -> None:
    kit.mark("logger")
    with open(kit.fifo("lines"), "r+b", buffering=0) as lines:
        lines.readline()


def packed(number: int) -> bytes:
    get, put = os.pipe()
    with subprocess.Popen([sys.executable, __file__, "pack"], stdin=get, stdout=subprocess.PIPE) as packer:
        os.close(get)
        if kit.differs(number):
            os.set_inheritable(put, True)
            subprocess.Popen([sys.executable, __file__, "log"], close_fds=False)
            kit.until_there("logger")
        os.write(put, b"token " * number)
        os.close(put)
        assert packer.stdout
        return packer.stdout.read()


def main() -> None:
    kit.begin()
    if kit.is_healthy():
        subprocess.Popen([sys.executable, __file__, "log"])
    for number in range(1, 10**6):
        packed(number)
        kit.step(number)


if __name__ == "__main__":
    match sys.argv[1]:
        case "pack":
            pack()
        case "log":
            log()
        case _:
            main()
