"""A driver reads scores from ``tail -f`` of a file, to which a scorer, its child, adds a line for each prompt.

Once the scorer ends by an error, and the driver does not look. In the twin it takes long now and then. A rollout waits for its next line.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

import kit


def score() -> None:
    kit.mark("scorer")
    with (kit.folder() / "scores").open("a") as scores:
        for step, _ in enumerate(sys.stdin, 1):
            kit.work(0.2)
            if kit.differs(step):
                os._exit(1)
            if kit.is_late(step):
                time.sleep(kit.LONG_S)
            scores.write("1\n")
            scores.flush()


def rollout() -> None:
    kit.mark("rollout")
    while sys.stdin.readline():
        kit.work(0.2)
        print("1", flush=True)


def main() -> None:
    kit.begin()
    (kit.folder() / "scores").touch()
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    rollouts = subprocess.Popen([sys.executable, __file__, "rollout"], **pipes)
    scorer = subprocess.Popen([sys.executable, __file__, "score"], stdin=subprocess.PIPE, text=True)
    tail = subprocess.Popen(["tail", "-n", "+1", "-f", str(kit.folder() / "scores")], stdout=subprocess.PIPE, text=True)
    kit.mark("tail", tail.pid)
    for step in range(1, 10**6):
        kit.mark("main")
        rollouts.stdin.write("1\n")
        rollouts.stdin.flush()
        rollouts.stdout.readline()
        scorer.stdin.write("1\n")
        scorer.stdin.flush()
        tail.stdout.readline()
        kit.step(step)


if __name__ == "__main__":
    {"score": score, "rollout": rollout}.get(sys.argv[1], main)()
