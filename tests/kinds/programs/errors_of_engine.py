"""A rollout has an engine as a program and asks it line by line; what the engine prints as errors a thread reads and counts. A judge is idle.

Once a line of errors is no text, and that thread ends: the engine fills the pipe and stands. In the twin an answer takes half a minute.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import kit


def engine() -> None:
    kit.mark("engine")
    for line in sys.stdin:
        step = int(line)
        kit.work(0.2)
        if kit.is_late(step):
            time.sleep(kit.LONG_S)
        word = b"\xff\xfe" if kit.differs(step) else b"warning"
        for _ in range(4000):
            sys.stderr.buffer.write(word + b": cache of step %d is nearly full\n" % step)
        sys.stderr.buffer.flush()
        print(step, flush=True)


def judge() -> None:
    kit.mark("judge")
    for line in sys.stdin:
        print(line.strip(), flush=True)


def count(child: subprocess.Popen[str]) -> None:
    assert child.stderr is not None
    found = 0
    for line in child.stderr:
        found += "warning" in line


def ask(child: subprocess.Popen[str], step: int) -> str:
    assert child.stdin is not None and child.stdout is not None
    child.stdin.write(f"{step}\n")
    child.stdin.flush()
    return child.stdout.readline()


def main() -> None:
    kit.begin()
    pipe = subprocess.PIPE
    child = subprocess.Popen([sys.executable, __file__, "engine"], stdin=pipe, stdout=pipe, stderr=pipe, text=True, encoding="utf-8")
    threading.Thread(target=count, args=(child,), name="errors", daemon=True).start()
    grader = subprocess.Popen([sys.executable, __file__, "judge"], stdin=pipe, stdout=pipe, text=True)
    for step in range(1, 10**6):
        if kit.differs(step):
            kit.mark("main")
        ask(child, step)
        ask(grader, step)
        kit.step(step)


if __name__ == "__main__":
    {"engine": engine, "judge": judge}.get(sys.argv[1], main)()
