"""A trainer publishes weights under one lock and enters them into a table under another; a thread that tidies the table publishes, too, at times.

A third thread prints figures all the time: it works, and takes neither lock.
"""

from __future__ import annotations

import hashlib
import os
import sys
import threading
import time

import kit

weights = threading.Lock()
table = threading.Lock()
tidies = threading.Event()


def tidy() -> None:
    while True:
        with table:
            kit.work(0.3)
            if (kit.folder() / "left").exists():
                tidies.set()
                with weights:
                    (kit.folder() / "published").write_text("again")


def figures() -> None:
    text = b"x" * 4096
    while True:
        for _ in range(400):
            text = hashlib.sha256(text).digest() * 128
        (kit.folder() / "figures").write_text(text[:8].hex())
        time.sleep(0.02)


def publish(step: int) -> None:
    with weights:
        (kit.folder() / "published").write_text(str(step))
        if kit.differs(step):
            tidies.wait()
        with table:
            kit.work(0.3)


if __name__ == "__main__":
    kit.begin()
    told, tells = os.pipe()
    evaluator = os.fork()
    if evaluator == 0:
        os.close(tells)
        kit.mark("evaluator")
        while os.read(told, 1):
            kit.work(0.2)
        sys.exit()
    os.close(told)
    for thread in (tidy, figures):
        threading.Thread(target=thread, daemon=True, name=thread.__name__).start()
    for step in range(1, 10**6):
        kit.work(0.4)
        publish(step)
        os.write(tells, b"x")
        kit.step(step)
