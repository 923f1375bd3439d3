"""Two rollout actors ask an actor of weights again and again until their version is new enough; the driver publishes it when both are through."""

from __future__ import annotations

import asyncio

import kit
import ray


@ray.remote(num_cpus=0)
class Weights:
    def __init__(self) -> None:
        kit.mark("weights")
        self.version = 0

    def publish(self, version: int) -> None:
        self.version = version

    def get_version(self) -> int:
        return self.version


@ray.remote(num_cpus=0)
class Rollout:
    def __init__(self, name: str, weights: ray.actor.ActorHandle) -> None:
        self.name = name
        self.weights = weights
        kit.mark(name)

    async def roll_out(self, step: int) -> int:
        kit.mark(self.name)
        needed = step if kit.differs(step) else step - 1
        while await self.weights.get_version.remote() < needed:
            await asyncio.sleep(0.25)
        await asyncio.sleep(kit.pause() * 0.4)
        return step


if __name__ == "__main__":
    kit.begin()
    info = ray.init(num_cpus=2, include_dashboard=False, _temp_dir=str(kit.folder() / "r"), log_to_driver=False, object_store_memory=100 * 2**20)
    weights = Weights.remote()
    rollouts = [Rollout.remote(f"rollout{n}", weights) for n in range(2)]
    kit.mark("cluster", address=info["gcs_address"])
    for step in range(1, 10**6):
        kit.mark("main")
        pending = [rollout.roll_out.remote(step) for rollout in rollouts]
        while pending:
            _, pending = ray.wait(pending, num_returns=len(pending), timeout=1)
        kit.work(0.2)
        ray.get(weights.publish.remote(step))
        kit.step(step)
