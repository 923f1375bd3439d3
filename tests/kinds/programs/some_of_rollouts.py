"""A driver goes on as soon as three of its four rollouts have answered, and then publishes the new weights; some rollouts wait for just these.

With one that waits there are three without it, with two that wait there are not.
"""

import asyncio

import ray
from kit import begin, differs, mark, step, work


@ray.remote(num_cpus=0)
class Weights:
    def __init__(self) -> None:
        mark("weights")
        self.version = 0
        self.change = asyncio.Condition()

    async def publish(self, version: int) -> None:
        async with self.change:
            self.version = version
            self.change.notify_all()

    async def at_least(self, version: int) -> int:
        async with self.change:
            await self.change.wait_for(lambda: self.version >= version)
            return self.version


@ray.remote(num_cpus=0)
class Rollout:
    def __init__(self, n: int, weights: "ray.actor.ActorHandle") -> None:
        self.n, self.weights = n, weights
        mark(f"rollout{n}")

    def play(self, number: int, is_on_policy: bool) -> int:
        mark(f"rollout{self.n}")
        ray.get(self.weights.at_least.remote(number if is_on_policy else number - 1))
        work(0.5)
        return number


def main() -> None:
    begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    mark("cluster", address=ray.get_runtime_context().gcs_address)
    weights = Weights.remote()
    rollouts = [Rollout.remote(n, weights) for n in range(4)]
    for number in range(1, 10**6):
        first_on_policy = 2 if differs(number) else 3
        answers = [rollout.play.remote(number, n >= first_on_policy) for n, rollout in enumerate(rollouts)]
        _, late = ray.wait(answers, num_returns=3)
        ray.get(weights.publish.remote(number))
        ray.get(late)
        step(number)


if __name__ == "__main__":
    main()
