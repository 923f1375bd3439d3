"""Rank 0 has a thread that serves batches to rank 1 over a socket, each tokenized by a worker of its process pool, and trains as rank 1 does.

Once a worker opens a vocabulary that is a pipe without a writer. In the twin a worker is slow.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
import sys
import threading
import time
from pathlib import Path

import kit


def tokenize(step: int) -> int:
    kit.mark("tokenizer")
    if kit.differs(step):
        Path(kit.fifo("vocabulary")).read_text()
    if kit.is_late(step):
        time.sleep(kit.LONG_S)
    return step


def serve(listener: socket.socket) -> None:
    pool = multiprocessing.get_context("spawn").Pool(1)
    connection, _ = listener.accept()
    lines = connection.makefile("r")
    while True:
        step = int(lines.readline())
        pool.apply(tokenize, (step,))
        connection.sendall(b"batch\n")


def rank() -> None:
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    me = int(os.environ["RANK"])
    kit.mark(f"rank{me}")
    if me == 0:
        listener = socket.create_server(("127.0.0.1", 0))
        kit.mark("batches", port=listener.getsockname()[1])
        threading.Thread(target=serve, args=(listener,), name="batches", daemon=True).start()
    connection = socket.create_connection(("127.0.0.1", kit.until_there("batches")["port"])) if me == 1 else None
    lines = connection.makefile("r") if connection is not None else None
    for step in range(1, 10**6):
        if connection is not None and lines is not None:
            connection.sendall(f"{step}\n".encode())
            lines.readline()
        kit.work(0.2)
        dist.all_reduce(torch.ones(8))
        if me == 0:
            kit.step(step)


def main() -> None:
    kit.begin()
    for one in kit.ranks_as_programs(__file__, 2):
        one.wait()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main()
    else:
        rank()
