"""Two writers put episodes into a database in one file, for as long as it takes; a compactor has it for itself at the beginning of each step.

In its transaction the compactor waits for a word of the writers, who wait for the database. In the twin it works for long, inside of the library.
"""

from __future__ import annotations

import multiprocessing
import sqlite3
import time
from multiprocessing.connection import Connection

import kit

COUNT = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < ?) SELECT sum(x) FROM n"


def opened() -> sqlite3.Connection:
    return sqlite3.connect(kit.folder() / "replay.db", timeout=3600, isolation_level=None)


def write(number: int, orders: Connection, compactor: Connection) -> None:
    replay = opened()
    while True:
        step = orders.recv()
        kit.mark(f"writer{number}")
        time.sleep(0.2)
        for _ in range(3):
            kit.work(0.1)
            replay.execute("INSERT INTO episodes VALUES (?, ?)", (step, "moves " * 50))
        compactor.send("written")
        orders.send(step)


def compact(orders: Connection, writers: list[Connection]) -> None:
    replay = opened()
    began = time.monotonic()
    replay.execute(COUNT, (300_000,)).fetchone()
    rate = 300_000 / (time.monotonic() - began)
    while True:
        step = orders.recv()
        kit.mark("compactor")
        replay.execute("BEGIN EXCLUSIVE")
        replay.execute("DELETE FROM episodes WHERE step < ?", (step - 1,))
        replay.execute(COUNT, (int(rate * (kit.LONG_S if kit.is_late(step) else 0.4)),)).fetchone()
        if kit.differs(step):
            for writer in writers:
                writer.recv()
        replay.execute("COMMIT")
        for writer in writers:
            writer.recv()
        orders.send(step)


if __name__ == "__main__":
    kit.begin()
    opened().execute("CREATE TABLE episodes (step, moves)")
    spawn = multiprocessing.get_context("spawn")
    told, orders = [], []
    for n in range(2):
        hears, tells = spawn.Pipe(duplex=False)
        ours, theirs = spawn.Pipe()
        spawn.Process(target=write, args=(n, theirs, tells), daemon=True).start()
        theirs.close()
        tells.close()
        told.append(hears)
        orders.append(ours)
    ours, theirs = spawn.Pipe()
    spawn.Process(target=compact, args=(theirs, told), daemon=True).start()
    theirs.close()
    orders.append(ours)
    for step in range(1, 10**6):
        for one in orders:
            one.send(step)
        for one in orders:
            one.recv()
        kit.work(0.2)
        kit.step(step)
