"""A driver goes on as soon as three of four rollouts have brought an episode, and then publishes the next version of the weights.

Once two rollouts wait for that version at the beginning of an episode already. In the twin one of these two plays for half a minute.
"""

from __future__ import annotations

import asyncio
import time

import kit
import ray


@ray.remote(num_cpus=0)
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
    def __init__(self, number: int, weights: ray.actor.ActorHandle) -> None:
        self.number, self.weights = number, weights

    def play(self, version: int) -> int:
        kit.mark(f"rollout{self.number}")
        kit.work(0.3)
        if self.number == 2 and kit.is_late(version):
            time.sleep(kit.LONG_S)
        ahead = self.number == 3 and not kit.differs(version) and kit.is_late(version)
        if ahead or (self.number > 1 and kit.differs(version)):
            ray.get(self.weights.at_least.remote(version + 1))
        return version


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    weights = Weights.remote()
    rollouts = [Rollout.remote(n, weights) for n in range(4)]
    for version in range(1, 10**6):
        ray.get(weights.publish.remote(version))
        calls = [rollout.play.remote(version) for rollout in rollouts]
        if kit.differs(version):
            kit.mark("main")
        ray.wait(calls, num_returns=3)
        kit.step(version)


if __name__ == "__main__":
    main()
