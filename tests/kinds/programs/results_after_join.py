"""Threads put grades into a queue of four places; the main thread reads them only after it has joined the queue of tasks, and a batch has ten."""

import queue
import threading
import time

from kit import begin, differs, folder, step, work

tasks: "queue.Queue[int]" = queue.Queue(8)
grades: "queue.Queue[int]" = queue.Queue(4)


def grade() -> None:
    while True:
        task = tasks.get()
        work(0.15)
        grades.put(task * 2)
        tasks.task_done()


def tell() -> None:
    while True:
        (folder() / "alive").write_text(str(time.time()))
        time.sleep(0.5)


def main() -> None:
    begin()
    for one in (grade, grade, grade, tell):
        threading.Thread(target=one, daemon=True).start()
    for number in range(10**6):
        size = 10 if differs(number) else 4
        for task in range(size):
            tasks.put(task)
        tasks.join()
        sum(grades.get() for _ in range(size))
        step(number)


if __name__ == "__main__":
    main()
