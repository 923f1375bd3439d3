"""A learner reads the streams of two samplers, each at most two samples ahead; a sampler keeps the only licence of a simulator while it streams.

The learner reads the streams in the order in which it asked. Once it reads the second one first: that sampler waits for the licence, and the first
one, which keeps it, stands until somebody reads. In the twin the simulator once takes long to start.
"""

import asyncio
import time
from collections.abc import Iterator

import kit
import ray

SAMPLES = 5


@ray.remote(num_cpus=0, max_concurrency=20)
class Licences:
    def __init__(self) -> None:
        self.free = asyncio.Semaphore(1)
        kit.mark("licences")

    async def take(self) -> None:
        await self.free.acquire()

    async def give_back(self) -> None:
        self.free.release()


@ray.remote(num_cpus=0)
class Sampler:
    def __init__(self, n: int, licences: "ray.actor.ActorHandle") -> None:
        self.n, self.licences = n, licences
        kit.mark(f"sampler{n}")

    def play(self, number: int) -> Iterator[int]:
        ray.get(self.licences.take.remote())
        if kit.is_healthy() and number > 2 and self.n == 0:
            time.sleep(12)
        for sample in range(SAMPLES):
            kit.work(0.1)
            yield sample
        ray.get(self.licences.give_back.remote())


@ray.remote(num_cpus=0)
class Learner:
    def __init__(self, samplers: "list[ray.actor.ActorHandle]") -> None:
        self.samplers = samplers
        kit.mark("learner")

    def epoch(self, number: int) -> int:
        streams = []
        for sampler in self.samplers:
            streams.append(sampler.play.options(num_returns="streaming", _generator_backpressure_num_objects=2).remote(number))
            time.sleep(0.5)
        if kit.differs(number):
            streams.reverse()
        total = 0
        for stream in streams:
            for reference in stream:
                total += ray.get(reference)
                kit.work(0.05)
        return total


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    licences = Licences.remote()
    learner = Learner.remote([Sampler.remote(n, licences) for n in range(2)])
    for number in range(1, 10**6):
        ray.get(learner.epoch.remote(number))
        kit.step(number)


if __name__ == "__main__":
    main()
