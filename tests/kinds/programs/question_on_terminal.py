"""A tool runs a command in a terminal of its own for each step, as agents do, and reads what it prints until it ends. A judge is idle.

Once the command asks whether it may write over a file; the tool goes on reading and nobody answers.
"""

from __future__ import annotations

import os
import pty
import random
import subprocess
import sys
import time

import kit


def command(number: int) -> None:
    kit.mark("command")
    kit.work(0.3)
    if kit.differs(number):
        kit.mark("command")
        input("The file is there. Write over it? [y/N] ")
    if kit.is_healthy() and random.random() < 0.2:
        time.sleep(random.uniform(1, 3))
    print("done", number, flush=True)


def judge() -> None:
    kit.mark("judge")
    for line in sys.stdin:
        kit.work(0.2)
        print(line.strip(), flush=True)


def run(number: int) -> str:
    ours, theirs = pty.openpty()
    child = subprocess.Popen([sys.executable, __file__, "command", str(number)], stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    os.close(theirs)
    text = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:
            break
        text += part
    os.close(ours)
    child.wait()
    return text.decode().split("\n")[0].strip()


def main() -> None:
    kit.begin()
    scores = subprocess.Popen([sys.executable, __file__, "judge"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert scores.stdin and scores.stdout
    for number in range(1, 10**6):
        scores.stdin.write(run(number) + "\n")
        scores.stdin.flush()
        scores.stdout.readline()
        kit.step(number)


if __name__ == "__main__":
    match sys.argv[1]:
        case "command":
            command(int(sys.argv[2]))
        case "judge":
            judge()
        case _:
            main()
