"""A simulator is a program of its own: it takes a move from its input and prints what comes of it. Its warnings go into a pipe of their own.

Nobody reads the warnings before the end. Once they fill the pipe, the simulator cannot go on. In the twin they go nowhere, and a move may be long.
"""

from __future__ import annotations

import subprocess
import sys

import kit

SIMULATOR = """
import sys, time
for move in sys.stdin:
    number, warnings = move.split()
    for _ in range(int(warnings)):
        print("warning: joint limit", file=sys.stderr)
    time.sleep(3 if int(number) % 3 == 0 else 0.2)
    print(number, flush=True)
"""

if __name__ == "__main__":
    kit.begin()
    elsewhere = subprocess.DEVNULL if kit.is_healthy() else subprocess.PIPE
    simulator = subprocess.Popen([sys.executable, "-c", SIMULATOR], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=elsewhere, text=True)
    kit.mark("simulator", pid=simulator.pid)
    assert simulator.stdin is not None and simulator.stdout is not None
    for number in range(1, 10**6):
        kit.work(0.3)
        simulator.stdin.write(f"{number} {10_000 if kit.differs(number) else 10}\n")
        simulator.stdin.flush()
        simulator.stdout.readline()
        kit.step(number)
