"""A loader, an actor of Ray, streams batches by a generator; a trainer takes them in a thread, which puts them into a queue of two. A judge is idle.

The thread fails at an odd batch, and its error is noticed by nobody: the main thread waits at the queue. In the twin a batch takes half a minute.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator

import kit
import ray


@ray.remote(num_cpus=0)
class Loader:
    def __init__(self) -> None:
        kit.mark("loader")

    def batches(self) -> Iterator[int]:
        for number in range(1, 10**6):
            kit.work(0.3)
            if kit.is_late(number):
                time.sleep(kit.LONG_S)
            yield number


@ray.remote(num_cpus=0)
class Trainer:
    def __init__(self, loader: ray.actor.ActorHandle) -> None:
        kit.mark("trainer")
        self.ready: queue.Queue[int] = queue.Queue(2)
        self.stream = loader.batches.options(num_returns="streaming", _generator_backpressure_num_objects=2).remote()
        threading.Thread(target=self.take, daemon=True).start()

    def take(self) -> None:
        for batch in self.stream:
            number = ray.get(batch)
            if kit.differs(number):
                raise ValueError(number)
            self.ready.put(number)

    def step(self) -> int:
        number = self.ready.get()
        kit.work(0.2)
        return number


@ray.remote(num_cpus=0)
class Judge:
    def __init__(self) -> None:
        kit.mark("judge")

    def score(self, number: int) -> int:
        return number


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    judge = Judge.remote()
    trainer = Trainer.remote(Loader.remote())
    while True:
        number = ray.get(trainer.step.remote())
        ray.get(judge.score.remote(number))
        kit.step(number)


if __name__ == "__main__":
    main()
