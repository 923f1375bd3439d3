"""Four programs without process groups meet at every step by keys in torch's store."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import kit
from torch.distributed import TCPStore

WORLD = 4


def run(rank: int, port: int) -> None:
    store = TCPStore("127.0.0.1", port, None, rank == 0, timedelta(hours=1))
    for step in range(1, 10**6):
        kit.work(0.5)
        kit.mark(f"rank{rank}")
        if rank == 2 and kit.differs(step):
            read_shard(kit.fifo("shard"))
        store.set(f"{step}/{rank}", "there")
        store.wait([f"{step}/{other}" for other in range(WORLD)])
        if rank == 0:
            kit.step(step)


def read_shard(path: str) -> bytes:
    return Path(path).read_bytes()


if __name__ == "__main__":
    if "STORE_PORT" in os.environ:
        run(int(sys.argv[1]), int(os.environ["STORE_PORT"]))
    else:
        kit.begin()
        environment = {**os.environ, "STORE_PORT": str(kit.free_port())}
        for child in [subprocess.Popen([sys.executable, __file__, str(rank)], env=environment) for rank in range(WORLD)]:
            child.wait()
