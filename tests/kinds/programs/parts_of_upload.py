"""A trainer hands each checkpoint to a writer, the writer its parts to a store, one after the other; two rollouts wait for the next version.

The store takes one part and does not answer. In the twin it takes long for it.
"""

from __future__ import annotations

import multiprocessing
import time
from multiprocessing.connection import Connection

import kit


def keep(parts: Connection) -> None:
    while True:
        step, part = parts.recv()
        kit.mark("store")
        time.sleep(0.05)
        if part == 2:
            if kit.differs(step):
                continue
            if kit.is_late(step):
                time.sleep(kit.LONG_S)
        parts.send("kept")


def write(orders: Connection, store: Connection) -> None:
    while True:
        step = orders.recv()
        kit.mark("writer")
        for part in range(4):
            store.send((step, part))
            store.recv()
        orders.send(step)


def roll_out(number: int, versions: Connection) -> None:
    while True:
        version = versions.recv()
        kit.mark(f"rollout{number}")
        kit.work(0.3)
        versions.send([version] * 64)


if __name__ == "__main__":
    kit.begin()
    spawn = multiprocessing.get_context("spawn")
    to_writer, of_writer = spawn.Pipe()
    to_store, of_store = spawn.Pipe()
    rollouts = [spawn.Pipe() for _ in range(2)]
    for process in (
        spawn.Process(target=keep, args=(of_store,), daemon=True),
        spawn.Process(target=write, args=(of_writer, to_store), daemon=True),
        *(spawn.Process(target=roll_out, args=(n, theirs), daemon=True) for n, (_, theirs) in enumerate(rollouts)),
    ):
        process.start()
    for end in (of_store, of_writer, to_store, *(theirs for _, theirs in rollouts)):
        end.close()
    for step in range(1, 10**6):
        for ours, _ in rollouts:
            ours.send(step)
        for ours, _ in rollouts:
            ours.recv()
        kit.work(0.3)
        to_writer.send(step)
        to_writer.recv()
        kit.step(step)
