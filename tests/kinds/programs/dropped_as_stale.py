"""A rollouter makes samples in a task of its loop until enough are on the way, a queue holds them, a trainer takes a batch and counts anew.

The queue is once smaller than the batch and drops the oldest sample: the trainer waits for one more, the rollouter for the trainer to count anew. In
the twin a step of the trainer is slow. All are actors of Ray, and the driver waits for both of them.
"""

import asyncio
import time
from collections import deque

import kit
import ray

BATCH = 4


@ray.remote(num_cpus=0)
class Samples:
    def __init__(self) -> None:
        kit.mark("samples")
        self.kept: deque[int] = deque(maxlen=2 * BATCH)
        self.change = asyncio.Condition()

    async def put(self, sample: int) -> None:
        async with self.change:
            if kit.differs(sample) and self.kept.maxlen != BATCH - 1:
                self.kept = deque(self.kept, maxlen=BATCH - 1)
            self.kept.append(sample)
            self.change.notify_all()

    async def batch(self) -> list[int]:
        async with self.change:
            await self.change.wait_for(lambda: len(self.kept) >= BATCH)
            return [self.kept.popleft() for _ in range(BATCH)]


@ray.remote(num_cpus=0)
class Rollouter:
    def __init__(self, samples: "ray.actor.ActorHandle") -> None:
        kit.mark("rollouter")
        self.samples = samples
        self.made, self.version = 0, 1
        self.change = asyncio.Condition()

    async def run(self) -> None:
        await asyncio.gather(self.make(), self.watch())

    async def make(self) -> None:
        while True:
            async with self.change:
                await self.change.wait_for(lambda: self.made < BATCH)
                self.made += 1
            await asyncio.sleep(kit.pause() * 0.2)
            await self.samples.put.remote(self.version)

    async def watch(self) -> None:
        while True:
            await asyncio.sleep(2)

    async def count_anew(self, version: int) -> None:
        async with self.change:
            self.made, self.version = 0, version
            self.change.notify_all()


@ray.remote(num_cpus=0)
class Trainer:
    def __init__(self, samples: "ray.actor.ActorHandle", rollouter: "ray.actor.ActorHandle") -> None:
        kit.mark("trainer")
        self.samples, self.rollouter = samples, rollouter

    def run(self) -> None:
        for number in range(1, 10**6):
            ray.get(self.samples.batch.remote())
            kit.work(0.3)
            if kit.is_healthy() and number % 3 == 0:
                time.sleep(9)
            ray.get(self.rollouter.count_anew.remote(number + 1))
            kit.step(number)


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    samples = Samples.remote()
    rollouter = Rollouter.remote(samples)
    trainer = Trainer.remote(samples, rollouter)
    ray.get([rollouter.run.remote(), trainer.run.remote()])


if __name__ == "__main__":
    main()
