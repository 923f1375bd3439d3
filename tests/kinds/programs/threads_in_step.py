"""Three threads compute the parts of a step and begin each step together."""

from __future__ import annotations

import threading

import kit

TOGETHER = threading.Barrier(3)


def compute(part: int) -> None:
    for step in range(1, 10**6):
        TOGETHER.wait()
        kit.work(0.4)
        if part == 2 and kit.differs(step):
            return
        if part == 0:
            kit.step(step)


if __name__ == "__main__":
    kit.begin()
    threads = [threading.Thread(target=compute, args=(part,), name=f"part-{part}") for part in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
