"""A guard of memory stops the largest rollout (SIGSTOP), and lets it go on when memory is free again.

Rollouts write to one buffer under a lock of multiprocessing. Once the guard stops a rollout that has the lock, and memory does not become free. In
the twin it lets it go on after some seconds at most, and the rollouts work for long.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from typing import Any

import kit


def rollout(number: int, lock: Any, steps: Any) -> None:
    kit.mark(f"rollout{number}")
    step = 0
    while True:
        step += 1
        kit.work(0.3)
        if kit.is_late(step):
            time.sleep(kit.LONG_S / 2)
        with lock:
            if number == 1:
                kit.mark("holds")
            time.sleep(0.4)
            (kit.folder() / "holds.json").unlink(missing_ok=True) if number == 1 else None
        steps.put(number)


def guard(pid: int) -> None:
    kit.mark("guard")
    for step in range(1, 10**6):
        time.sleep(1.5)
        if not kit.is_healthy() and step < kit.STEP:
            continue
        while not (kit.folder() / "holds.json").exists():
            time.sleep(0.01)
        if kit.differs(step):
            os.kill(pid, signal.SIGSTOP)
            while not (kit.folder() / "free").exists():
                time.sleep(1.0)
        os.kill(pid, signal.SIGSTOP)
        time.sleep(0.2)
        os.kill(pid, signal.SIGCONT)


def main() -> None:
    kit.begin()
    context = multiprocessing.get_context("spawn")
    lock, steps = context.Lock(), context.Queue()
    rollouts = [context.Process(target=rollout, args=(n, lock, steps)) for n in range(3)]
    for one in rollouts:
        one.start()
    context.Process(target=guard, args=(rollouts[1].pid,)).start()
    for step in range(1, 10**6):
        kit.mark("main")
        for _ in rollouts:
            steps.get()
        kit.step(step)


if __name__ == "__main__":
    main()
