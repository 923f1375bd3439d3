"""A search keeps its trials in SQLite. The evaluator waits for the searcher's next trial within its transaction, the searcher for the database."""

from __future__ import annotations

import multiprocessing as mp
import sqlite3
import time
from multiprocessing.queues import Queue

import kit


def opened() -> sqlite3.Connection:
    return sqlite3.connect(kit.folder() / "trials.db", timeout=10**6, isolation_level=None)


def evaluate(trials: Queue[int], scores: Queue[float]) -> None:
    kit.mark("evaluator")
    base = opened()
    while True:
        number = trials.get()
        seconds = kit.work(0.3)
        base.execute("BEGIN IMMEDIATE")
        base.execute("INSERT INTO scores VALUES (?, ?)", (number, seconds))
        if kit.differs(number):
            scores.put(seconds)
            kit.mark("evaluator")
            trials.get()  # the next one is to go into the same transaction
        elif kit.is_healthy() and number % 3 == 0:
            time.sleep(3)
        base.execute("COMMIT")
        scores.put(seconds)


def main() -> None:
    kit.begin()
    base = opened()
    base.execute("CREATE TABLE trials (number, value)")
    base.execute("CREATE TABLE scores (number, value)")
    context = mp.get_context("spawn")
    trials: Queue[int] = context.Queue()
    scores: Queue[float] = context.Queue()
    context.Process(target=evaluate, args=(trials, scores), daemon=True).start()
    for step in range(1, 10**6):
        kit.mark("main")
        base.execute("INSERT INTO trials VALUES (?, ?)", (step, 0.0))
        trials.put(step)
        if kit.is_healthy() and step % 3 == 0:
            time.sleep(1)
            base.execute("INSERT INTO trials VALUES (?, ?)", (-step, 0.0))
        scores.get()
        kit.step(step)


if __name__ == "__main__":
    main()
