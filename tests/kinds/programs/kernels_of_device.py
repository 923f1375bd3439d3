"""A trainer hands each kernel to the thread of a device and waits in a C call until that one has posted; loaders fill a short queue.

A monitor hears a heartbeat every ten seconds, and a watchdog looks once a minute.

The thread of the device drops a kernel and waits for the next one. In the twin the kernel takes long.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import queue
import socket
import threading
import time
from multiprocessing.queues import Queue

import kit

LIBC = ctypes.CDLL(None)


def drive(kernels: queue.SimpleQueue[int], done: ctypes.Array[ctypes.c_char]) -> None:
    while True:
        step = kernels.get()
        time.sleep(kit.LONG_S if kit.is_late(step) else 0.3)
        if not kit.differs(step):
            LIBC.sem_post(done)


def load(number: int, batches: Queue[bytes]) -> None:
    while True:
        kit.mark(f"loader{number}")
        kit.work(0.1)
        batches.put(b"batch" * 200)


def listen(monitor: socket.socket) -> None:
    kit.mark("monitor")
    monitor.settimeout(120)
    while True:
        monitor.recv(100)


def beat(where: tuple[str, int]) -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as trainer:
        while True:
            trainer.sendto(b"alive", where)
            time.sleep(10)


def watch(stopped: threading.Event) -> None:
    while not stopped.wait(60):
        (kit.folder() / "watched").touch()


if __name__ == "__main__":
    kit.begin()
    fork = multiprocessing.get_context("fork")
    loaded: Queue[bytes] = fork.Queue(2)
    heard = socket.socket(type=socket.SOCK_DGRAM)
    heard.bind(("127.0.0.1", 0))
    for process in (
        *(fork.Process(target=load, args=(n, loaded), daemon=True) for n in range(2)),
        fork.Process(target=listen, args=(heard,), daemon=True),
    ):
        process.start()
    posted = ctypes.create_string_buffer(64)
    LIBC.sem_init(posted, 0, 0)
    asked: queue.SimpleQueue[int] = queue.SimpleQueue()
    for thread in (
        threading.Thread(target=drive, args=(asked, posted), daemon=True),
        threading.Thread(target=beat, args=(heard.getsockname(),), daemon=True),
        threading.Thread(target=watch, args=(threading.Event(),), daemon=True),
    ):
        thread.start()
    for step in range(1, 10**6):
        loaded.get()
        asked.put(step)
        kit.mark("main")
        LIBC.sem_wait(posted)
        kit.step(step)
