"""Three workers take tasks from one queue and put results into another; a task locks the file of its data set."""

from __future__ import annotations

import fcntl
import multiprocessing
import multiprocessing.queues

import kit

Tasks = multiprocessing.queues.Queue


def work_on_tasks(name: str, tasks: Tasks[int], results: Tasks[int]) -> None:
    kit.mark(name)
    while True:
        step = tasks.get()
        if kit.differs(step):
            kit.mark("busy")
        load(step)
        kit.work(0.3)
        results.put(step)


def load(step: int) -> None:
    with (kit.folder() / "data.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)


if __name__ == "__main__":
    kit.begin()
    tasks: Tasks[int] = multiprocessing.Queue()
    results: Tasks[int] = multiprocessing.Queue()
    for n in range(3):
        multiprocessing.Process(target=work_on_tasks, args=(f"worker{n}", tasks, results), daemon=True).start()
    for step in range(1, 10**6):
        kit.mark("main")
        if kit.differs(step):
            kept = (kit.folder() / "data.lock").open("w")
            fcntl.flock(kept, fcntl.LOCK_EX)
        tasks.put(step)
        results.get()
        kit.step(step)
