"""A trainer runs each answer as a program, and has a function called between fork and exec, which sets limits and tells so in the log.

A reporter thread writes to the same log under its lock. Once it has the lock while the trainer forks: in the child nobody gives it back, and the
trainer reads from the child whether exec went well. In the twin the function waits for half a minute.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import kit

LOG = threading.Lock()
INSIDE, LET_GO = threading.Event(), threading.Event()


def report() -> None:
    while True:
        time.sleep(0.3)
        with LOG:
            sys.stderr.write("alive\n")
            if LET_GO.is_set():
                INSIDE.set()
                time.sleep(1)
                LET_GO.clear()


def prepare(number: int) -> None:
    kit.mark("child")
    os.nice(1)
    with LOG:
        sys.stderr.write("limits are set\n")
    if kit.is_late(number):
        time.sleep(kit.LONG_S)


def scorer() -> None:
    kit.mark("scorer")
    for line in sys.stdin:
        print(line.strip(), flush=True)


def main() -> None:
    kit.begin()
    scores = subprocess.Popen([sys.executable, __file__, "scorer"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert scores.stdin and scores.stdout
    threading.Thread(target=report, daemon=True).start()
    for number in range(1, 10**6):
        kit.work(0.4)
        if kit.differs(number):
            LET_GO.set()
            INSIDE.wait()
        answer = subprocess.Popen(["sh", "-c", "sleep 0.2; echo 4"], stdout=subprocess.PIPE, preexec_fn=lambda number=number: prepare(number))
        answer.communicate()
        scores.stdin.write(f"{number}\n")
        scores.stdin.flush()
        scores.stdout.readline()
        kit.step(number)


if __name__ == "__main__":
    scorer() if sys.argv[1:] == ["scorer"] else main()
