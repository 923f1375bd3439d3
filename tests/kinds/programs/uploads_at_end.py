"""The main program ends after some steps; a thread that uploads what it made keeps the process alive until it is done."""

from __future__ import annotations

import queue
import threading
from pathlib import Path

import kit

UPLOADS: queue.Queue[int] = queue.Queue()


def upload() -> None:
    while True:
        step = UPLOADS.get()
        kit.mark("main")
        if kit.differs(step):
            open_target(kit.fifo("bucket"))
        kit.work()
        kit.step(step)
        if kit.is_healthy():
            UPLOADS.put(step + 1)


def open_target(path: str) -> None:
    Path(path).write_bytes(b"checkpoint")


if __name__ == "__main__":
    kit.begin()
    threading.Thread(target=upload, name="uploader").start()
    for step in range(1, kit.STEP + 1):
        kit.work(0.2)
        UPLOADS.put(step)
