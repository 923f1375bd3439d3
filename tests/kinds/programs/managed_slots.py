"""A writer and a reader of a buffer take turns, by a semaphore of multiprocessing's manager and two events."""

from __future__ import annotations

import multiprocessing
from multiprocessing.synchronize import Event
from typing import Any

import kit


def write(buffer: Any, written: Event, read: Event) -> None:
    for step in range(1, 10**6):
        kit.mark("writer")
        with buffer:
            kit.work(0.2)
            written.set()
            if kit.differs(step):
                read.wait()
        read.wait()
        read.clear()


def sample(buffer: Any, written: Event, read: Event) -> None:
    for step in range(1, 10**6):
        kit.mark("reader")
        written.wait()
        written.clear()
        with buffer:
            kit.work(0.2)
        read.set()
        kit.step(step)


if __name__ == "__main__":
    kit.begin()
    spawn = multiprocessing.get_context("spawn")
    with spawn.Manager() as manager:
        kit.mark("manager", manager._process.pid)
        buffer = manager.BoundedSemaphore(1)
        written, read = spawn.Event(), spawn.Event()
        both = [spawn.Process(target=target, args=(buffer, written, read)) for target in (write, sample)]
        for one in both:
            one.start()
        for one in both:
            one.join()
