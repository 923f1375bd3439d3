"""A parameter server is a Ray actor with threads: workers push gradients there and pull the weights, which are new when all have pushed."""

from __future__ import annotations

import threading
from typing import Any

import kit
import ray


@ray.remote(num_cpus=0, max_concurrency=8)
class Server:
    def __init__(self) -> None:
        kit.mark("server")
        self.pushed: set[int] = set()
        self.version = 0
        self.fresh = threading.Condition()

    def push(self, worker: int) -> None:
        with self.fresh:
            self.pushed.add(worker)
            if len(self.pushed) == 3:
                self.pushed.clear()
                self.version += 1
                self.fresh.notify_all()

    def pull(self, version: int) -> int:
        with self.fresh:
            self.fresh.wait_for(lambda: self.version >= version)
            return self.version


@ray.remote(num_cpus=0)
class Worker:
    def __init__(self, number: int, server: Any) -> None:
        kit.mark(f"worker{number}")
        self.number = number
        self.server = server

    def train(self, step: int) -> int:
        kit.work()
        if self.number == 2 and kit.differs(step):
            kit.mark("worker2")
            with open(kit.fifo("data")) as data:
                data.read()
        ray.get(self.server.push.remote(self.number))
        return int(ray.get(self.server.pull.remote(step)))


if __name__ == "__main__":
    kit.begin()
    info = ray.init(num_cpus=2, include_dashboard=False, _temp_dir=str(kit.folder() / "r"), log_to_driver=False, object_store_memory=100 * 2**20)
    server = Server.remote()
    workers = [Worker.remote(number, server) for number in range(3)]
    kit.mark("cluster", address=info["gcs_address"])
    for step in range(1, 10**6):
        ray.get([worker.train.remote(step) for worker in workers])
        kit.step(step)
