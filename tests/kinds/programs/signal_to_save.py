"""A scheduler asks a trainer now and then by a signal to save its state, which is guarded by a lock; it does so between two steps only."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import kit

state = threading.Lock()


def save(*_: object) -> None:
    with state:
        (kit.folder() / "saved").write_text("state")


def report() -> None:
    while True:
        time.sleep(5.0)
        (kit.folder() / "report").write_text("alive")


def ask(trainer: int) -> None:
    kit.mark("scheduler")
    while True:
        time.sleep(0.7)
        (kit.folder() / "saved").unlink(missing_ok=True)
        os.kill(trainer, signal.SIGUSR1)
        while not (kit.folder() / "saved").exists():
            time.sleep(0.1)


if __name__ == "__main__":
    if "ask" in sys.argv:
        ask(os.getppid())
    else:
        kit.begin()
        signal.signal(signal.SIGUSR1, save)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])  # for the thread, too: it must come to the main thread
        threading.Thread(target=report, daemon=True, name="report").start()
        subprocess.Popen([sys.executable, __file__, "ask"])
        for step in range(1, 10**6):
            signal.pthread_sigmask(signal.SIG_UNBLOCK if kit.differs(step) else signal.SIG_BLOCK, [signal.SIGUSR1])
            with state:
                kit.work(2.0)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR1])
            kit.work(0.3)
            kit.step(step)
