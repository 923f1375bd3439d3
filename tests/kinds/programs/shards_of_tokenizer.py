"""A pool of three processes tokenizes the shards of a step, and two environments of their own listen for the trainer, who asks them afterwards.

Whoever has the first shard tells its progress under a lock that it has already. In the twin this shard takes long, in one call.
"""

from __future__ import annotations

import multiprocessing
import socket

import kit

PROGRESS = multiprocessing.get_context("fork").Lock()
"""Around the line that tells how far all are."""


def tell() -> None:
    with PROGRESS:
        pass


def tokenize(task: tuple[int, int]) -> int:
    step, shard = task
    if shard == 0:
        kit.mark("tokenizer")
        if kit.differs(step):
            with PROGRESS:
                tell()
        kit.in_c(kit.LONG_S if kit.is_late(step) else 0.2)
    else:
        kit.work(0.1)
    tell()
    return shard


def play(number: int, listener: socket.socket) -> None:
    kit.mark(f"environment{number}")
    while True:
        trainer, _ = listener.accept()
        with trainer:
            trainer.recv(100)
            kit.work(0.1)
            trainer.sendall(b"start")


if __name__ == "__main__":
    kit.begin()
    fork = multiprocessing.get_context("fork")
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    for n, one in enumerate(listeners):
        fork.Process(target=play, args=(n, one), daemon=True).start()
    with fork.Pool(3) as pool:
        for step in range(1, 10**6):
            pool.map(tokenize, [(step, shard) for shard in range(3)], chunksize=1)
            for one in listeners:
                with socket.create_connection(one.getsockname()) as environment:
                    environment.sendall(b"reset")
                    environment.recv(100)
            kit.step(step)
