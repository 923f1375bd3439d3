"""Two ranks gather one tensor after the other; rank 0 streams each to an engine over a socket before the next is gathered.

The engine takes tensors in a thread, under a lock that its generating thread has while it decodes. Once that thread opens a cache that is a pipe
without a writer. In the twin it decodes long.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import kit

TENSORS = 4
SIZE = 1 << 20
"""Bytes of a tensor: more than the buffers of a connection hold."""


def engine() -> None:
    lock = threading.Lock()
    steps: list[int] = [1]

    def generate() -> None:
        while True:
            with lock:
                kit.work(0.1)
                if kit.differs(steps[0]):
                    kit.mark("engine", port=port)
                    Path(kit.fifo("cache")).read_text()
                if kit.is_late(steps[0]):
                    time.sleep(kit.LONG_S)
            time.sleep(0.05)

    def take(connection: socket.socket) -> None:
        while True:
            left = SIZE
            with connection.makefile("rb") as file:
                while left:
                    left -= len(file.read(min(left, 1 << 16)))
                    with lock:
                        pass
            connection.sendall(b"k")
            taken.append(0)
            steps[0] = 1 + len(taken) // TENSORS

    taken: list[int] = []
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    kit.mark("engine", port=port)
    threading.Thread(target=generate, name="decode", daemon=True).start()
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=take, args=(connection,), name="weights", daemon=True).start()


def rank() -> None:
    me = int(os.environ["RANK"])
    kit.mark(f"rank{me}")
    connection = socket.create_connection(("127.0.0.1", kit.until_there("engine")["port"])) if me == 0 else None
    for step in range(1, 10**6):
        kit.work(0.2)
        for _ in range(TENSORS):
            parts = [torch.zeros(SIZE // 2, dtype=torch.uint8) for _ in range(2)]
            dist.all_gather(parts, torch.ones(SIZE // 2, dtype=torch.uint8))
            if connection is not None:
                connection.sendall(torch.cat(parts).numpy().tobytes())
                connection.recv(1)
        if me == 0:
            kit.step(step)


def main() -> None:
    kit.begin()
    subprocess.Popen([sys.executable, __file__, "engine"])
    for one in kit.ranks_as_programs(__file__, 2):
        one.wait()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        engine() if sys.argv[1] == "engine" else main()
    else:
        import torch
        import torch.distributed as dist

        dist.init_process_group("gloo")
        rank()
