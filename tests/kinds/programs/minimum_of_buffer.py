"""Two rollouts play one episode for each version of the weights; the trainer, the driver, takes a batch from a buffer and then publishes the next.

The smallest batch grows with the run, to one more than the rollouts play: the trainer waits for episodes, they wait for weights.
"""

import asyncio

import kit
import ray


@ray.remote(num_cpus=0, max_concurrency=100)
class Buffer:
    def __init__(self) -> None:
        kit.mark("buffer")
        self.episodes: list[int] = []
        self.changed = asyncio.Condition()

    async def put(self, episode: int) -> None:
        async with self.changed:
            self.episodes.append(episode)
            self.changed.notify_all()

    async def take(self, smallest: int) -> int:
        async with self.changed:
            await self.changed.wait_for(lambda: len(self.episodes) >= smallest)
            taken, self.episodes = len(self.episodes), []
            return taken


@ray.remote(num_cpus=0, max_concurrency=100)
class Weights:
    def __init__(self) -> None:
        kit.mark("weights")
        self.version = 0
        self.changed = asyncio.Condition()

    async def publish(self, version: int) -> None:
        async with self.changed:
            self.version = version
            self.changed.notify_all()

    async def at_least(self, version: int) -> int:
        async with self.changed:
            await self.changed.wait_for(lambda: self.version >= version)
            return self.version


@ray.remote(num_cpus=0)
class Rollout:
    def __init__(self, name: str) -> None:
        kit.mark(name)

    def play(self, buffer: "ray.actor.ActorHandle", weights: "ray.actor.ActorHandle") -> None:
        for number in range(1, 10**6):
            ray.get(weights.at_least.remote(number))
            kit.work(0.6)
            ray.get(buffer.put.remote(number))


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    buffer, weights = Buffer.remote(), Weights.remote()
    playing = [Rollout.remote(f"rollout{n}").play.remote(buffer, weights) for n in range(2)]
    for number in range(1, 10**6):
        weights.publish.remote(number)
        ray.get(buffer.take.remote(3 if kit.differs(number) else 2))
        kit.work(0.3)
        kit.step(number)
    ray.get(playing)


if __name__ == "__main__":
    main()
