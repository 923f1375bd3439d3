"""Three ranks meet at a barrier at which the first looks who is missing, once a round, before they save.

Once the last rank sends its samples to an archive that has stopped reading, before it comes there. In the twin the archive reads slowly.
"""

from __future__ import annotations

import datetime
import os
import socket
import subprocess
import sys
import threading
import time

import kit

HOURS = datetime.timedelta(hours=3)


def archive() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    kit.mark("archive", port=listener.getsockname()[1])
    connection, _ = listener.accept()
    rounds = 0
    while True:
        left = 3_000_000
        while left:
            left -= len(connection.recv(min(left, 65536)))
        rounds += 1
        connection.sendall(b"k")
        if kit.differs(rounds):
            kit.mark("archive")
            threading.Event().wait()
        if kit.is_late(rounds):
            time.sleep(kit.LONG_S)


def rank() -> None:
    import torch
    import torch.distributed as dist

    me = int(os.environ["RANK"])
    kit.mark(f"rank{me}")
    dist.init_process_group("gloo", timeout=HOURS)
    port = kit.until_there("archive")["port"]
    kept = socket.create_connection(("127.0.0.1", port)) if me == 2 else None
    for step in range(1, 10**6):
        kit.work(0.3)
        dist.all_reduce(torch.ones(16))
        if kept is not None:
            kept.sendall(b"s" * 3_000_000)
            kept.recv(1)
        dist.monitored_barrier(timeout=HOURS, wait_all_ranks=True)
        if me == 0:
            kit.step(step)


def main() -> None:
    kit.begin()
    subprocess.Popen([sys.executable, __file__, "archive"])
    for one in kit.ranks_as_programs(__file__, 3):
        one.wait()


if __name__ == "__main__":
    if "RANK" in os.environ:
        rank()
    elif sys.argv[1] == "archive":
        archive()
    else:
        main()
