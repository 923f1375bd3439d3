"""Two programs write their results into one SQLite file; whoever comes second waits inside of the library."""

from __future__ import annotations

import multiprocessing
import sqlite3
import threading

import kit


def book(name: str) -> None:
    ledger = sqlite3.connect(kit.folder() / "results.db", timeout=10**6, isolation_level=None)
    ledger.execute("create table if not exists results (name text, step integer)")
    for step in range(1, 10**6):
        kit.mark(name)
        ledger.execute("begin immediate")
        ledger.execute("insert into results values (?, ?)", (name, step))
        kit.work(0.2)
        if name == "grader" and kit.differs(step):
            threading.Event().wait()
        ledger.execute("commit")
        if name == "main":
            kit.step(step)
        kit.work(0.2)


if __name__ == "__main__":
    kit.begin()
    multiprocessing.get_context("spawn").Process(target=book, args=("grader",), daemon=True).start()
    kit.until_there("grader")
    book("main")
