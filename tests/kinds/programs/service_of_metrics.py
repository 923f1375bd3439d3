"""Two ranks, actors of Ray; rank 0 logs to a service, a program beside it: a thread reads its replies and sets the event of each.

Once the service dies. The thread reads the end and returns, and nobody sets the event for which rank 0 waits. In the twin the service uploads for
half a minute.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time

import kit
import ray
import torch
import torch.distributed as dist
from ports import free_port


def serve() -> None:
    kit.mark("service")
    with socket.socket(fileno=int(sys.argv[2])) as ours, ours.makefile("rw") as lines:
        for line in lines:
            number = int(line)
            time.sleep(kit.LONG_S if kit.is_late(number) else 0.1)
            if kit.differs(number):
                os._exit(1)
            lines.write(line)
            lines.flush()


class Log:
    """The client's side of the service."""

    def __init__(self) -> None:
        self.ours, theirs = socket.socketpair()
        self.service = subprocess.Popen([sys.executable, __file__, "serve", str(theirs.fileno())], pass_fds=[theirs.fileno()])
        theirs.close()
        self.replies: dict[int, threading.Event] = {}
        threading.Thread(target=self.read, name="replies", daemon=True).start()

    def read(self) -> None:
        for line in self.ours.makefile():
            self.replies.pop(int(line)).set()

    def log(self, number: int) -> None:
        replied = self.replies[number] = threading.Event()
        self.ours.sendall(f"{number}\n".encode())
        replied.wait()


@ray.remote(num_cpus=0)
class Rank:
    def __init__(self, rank: int) -> None:
        kit.mark(f"rank{rank}")
        self.rank = rank

    def join(self, port: int) -> None:
        dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=self.rank, world_size=2)
        self.log = Log() if self.rank == 0 else None

    def train(self, number: int) -> int:
        kit.work(0.3)
        dist.all_reduce(torch.ones(64))
        if self.log:
            self.log.log(number)
        dist.all_reduce(torch.ones(1))
        return number


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    ranks = [Rank.remote(rank) for rank in range(2)]
    port = free_port()
    ray.get([rank.join.remote(port) for rank in ranks])
    for number in range(1, 10**6):
        ray.get([rank.train.remote(number) for rank in ranks])
        kit.step(number)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    else:
        main()
