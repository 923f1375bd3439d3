"""A pool's processes are forked while a thread writes the log under a lock, which they take when they are made ready."""

from __future__ import annotations

import multiprocessing
import threading
import time
from concurrent.futures import ProcessPoolExecutor

import kit

LOG_LOCK = threading.Lock()
ALLOWED, WRITING = threading.Event(), threading.Event()


def write_log() -> None:
    while True:
        ALLOWED.wait()
        with LOG_LOCK:
            WRITING.set()
            time.sleep(0.1)
            WRITING.clear()
        time.sleep(0.01)


def make_ready() -> None:
    kit.mark("worker")
    with LOG_LOCK:
        pass


def grade(n: int) -> int:
    return n


if __name__ == "__main__":
    kit.begin()
    threading.Thread(target=write_log, name="log", daemon=True).start()
    for step in range(1, 10**6):
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork"), initializer=make_ready) as pool:
            if kit.differs(step):
                ALLOWED.set()
                WRITING.wait()
            else:
                ALLOWED.clear()
                time.sleep(0.3)
            future = pool.submit(grade, step)
            kit.mark("main")
            future.result()
        ALLOWED.set()
        kit.work(0.3)
        kit.step(step)
