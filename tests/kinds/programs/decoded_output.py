"""A launcher starts a trainer, reads what it prints in a thread, and waits for its end; the trainer prints much.

Once a line is no text, and the thread ends by that error: the trainer's pipe is full, and it prints for ever. In the twin the trainer is long.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import kit


def trainer() -> None:
    kit.mark("trainer")
    for step in range(1, 10**6):
        kit.work(0.3)
        if kit.is_late(step):
            time.sleep(kit.LONG_S)
        line = b"\xff\xfe" if kit.differs(step) else b"loss 0.1"
        for _ in range(2000):
            sys.stdout.buffer.write(line + b" step %d\n" % step)
        sys.stdout.buffer.flush()
        kit.step(step)


def read(child: subprocess.Popen[str]) -> None:
    assert child.stdout is not None
    for line in child.stdout:
        if "error" in line:
            print(line)


def main() -> None:
    kit.begin()
    child = subprocess.Popen([sys.executable, __file__, "trainer"], stdout=subprocess.PIPE, text=True, encoding="utf-8")
    threading.Thread(target=read, args=(child,), name="output", daemon=True).start()
    child.wait()


if __name__ == "__main__":
    trainer() if sys.argv[1] == "trainer" else main()
