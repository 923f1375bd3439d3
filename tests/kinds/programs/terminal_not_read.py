"""A driver runs a simulator at a terminal, reads its first line, and then waits for its end.

Once the simulator prints more than a terminal holds, and nobody reads. In the twin it prints little and works for long. A judge, a child, is idle.
"""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import time

import kit


def simulate(step: int) -> None:
    kit.mark("simulator")
    print("begun", flush=True)
    kit.work(0.3)
    if kit.differs(step):
        for number in range(5000):
            print("episode", number, "reward", 0.5, flush=True)
    elif kit.is_late(step):
        time.sleep(kit.LONG_S / 2)
        kit.work(0.5)
        time.sleep(kit.LONG_S / 2)
    print("done", flush=True)


def judge() -> None:
    kit.mark("judge")
    while sys.stdin.readline():
        kit.work(0.1)
        print("1", flush=True)


def main() -> None:
    kit.begin()
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    judging = subprocess.Popen([sys.executable, __file__, "judge"], **pipes)
    for step in range(1, 10**6):
        kit.mark("main")
        master, terminal = pty.openpty()
        simulator = subprocess.Popen([sys.executable, __file__, "simulate", str(step)], stdin=terminal, stdout=terminal, stderr=subprocess.DEVNULL)
        os.read(master, 100)
        simulator.wait()
        os.close(master)
        os.close(terminal)
        judging.stdin.write("1\n")
        judging.stdin.flush()
        judging.stdout.readline()
        kit.step(step)


if __name__ == "__main__":
    if sys.argv[1] == "simulate":
        simulate(int(sys.argv[2]))
    elif sys.argv[1] == "judge":
        judge()
    else:
        main()
