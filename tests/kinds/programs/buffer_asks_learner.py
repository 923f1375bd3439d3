"""An asynchronous buffer of Ray keeps a lock while it awaits the learner's version.

The learner's lane for files hangs, its lane for training goes on.
"""

import asyncio
import threading
from typing import Any

import ray
from kit import begin, differs, fifo, mark, step, work


@ray.remote(concurrency_groups={"files": 1, "training": 1})
class Learner:
    def __init__(self) -> None:
        mark("learner")
        self.trained = 0

    @ray.method(concurrency_group="files")
    def version(self, number: int) -> int:
        work(0.1)
        if differs(number):
            with open(fifo("version")) as file:
                file.read()
        return self.trained

    @ray.method(concurrency_group="training")
    def train(self) -> int:
        work(0.5)
        self.trained += 1
        return self.trained


@ray.remote
class Buffer:
    def __init__(self, learner: Any) -> None:
        mark("buffer")
        self.learner = learner
        self.lock = asyncio.Lock()
        self.samples: list[int] = []

    async def add(self, number: int) -> int:
        async with self.lock:
            self.samples.append(await self.learner.version.remote(number))
        return len(self.samples)

    async def size(self) -> int:
        return len(self.samples)


def train(learner: Any, buffer: Any) -> None:
    while True:
        ray.get(learner.train.remote())
        ray.get(buffer.size.remote())


def main() -> None:
    begin()
    ray.init(address="local", num_cpus=3, include_dashboard=False, log_to_driver=False)
    mark("cluster", address=ray.get_runtime_context().gcs_address)
    learner = Learner.remote()
    buffer = Buffer.remote(learner)
    threading.Thread(target=train, args=(learner, buffer), daemon=True).start()
    for number in range(10**6):
        ray.get([buffer.add.remote(number) for _ in range(3)])
        work(0.3)
        step(number)


if __name__ == "__main__":
    main()
