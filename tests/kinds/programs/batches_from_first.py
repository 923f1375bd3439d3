"""Rank 0 serves batches to the other ranks in a thread, over connections of multiprocessing, and trains as they do.

Once that thread opens a shard that is a pipe without a writer, for the batch of rank 1. In the twin a shard is read for long.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path

import kit


def batch_of(step: int, who: int) -> bytes:
    if who == 1 and kit.differs(step):
        return Path(kit.fifo("shard")).read_bytes()
    if who == 1 and kit.is_late(step):
        time.sleep(kit.LONG_S)
    return b"x" * 1024


def serve(listener: Listener) -> None:
    from multiprocessing.connection import wait

    clients: list[Connection] = [listener.accept() for _ in range(2)]
    while True:
        for client in wait(clients):
            assert isinstance(client, Connection)
            step, who = client.recv()
            client.send(batch_of(step, who))


def rank() -> None:
    me = int(os.environ["RANK"])
    kit.mark(f"rank{me}")
    place = str(kit.folder() / "batches.sock")
    if me == 0:
        threading.Thread(target=serve, args=(Listener(place, "AF_UNIX"),), name="batches", daemon=True).start()
    dist.barrier()
    server = Client(place, "AF_UNIX") if me else None
    for step in range(1, 10**6):
        if server is not None:
            server.send((step, me))
            server.recv()
        kit.work(0.2)
        dist.all_reduce(torch.ones(8))
        if me == 0:
            kit.step(step)


def main() -> None:
    kit.begin()
    for one in kit.ranks_as_programs(__file__, 3):
        one.wait()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main()
    else:
        import torch
        import torch.distributed as dist

        dist.init_process_group("gloo")
        rank()
