"""Rollouts ask an engine, an actor of coroutines, that is paused while a trainer publishes weights. A registry tells which engine is in use.

Once the registry replaces the paused engine, as it did not answer a probe. The trainer asks the registry and lets the new one go on; the rollouts
kept the handle of the old one, which stays paused. In the twin no engine is replaced, and the weights once take long.
"""

import asyncio
import time

import kit
import ray


@ray.remote(num_cpus=0, max_concurrency=50)
class Engine:
    def __init__(self, generation: int) -> None:
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()
        kit.mark(f"engine{generation}")

    async def generate(self, prompt: int) -> int:
        await asyncio.sleep(kit.pause() / 4)
        await self.may_go_on.wait()
        return prompt + 1

    async def pause(self) -> None:
        self.may_go_on.clear()

    async def resume(self) -> None:
        self.may_go_on.set()


@ray.remote(num_cpus=0)
class Registry:
    def __init__(self) -> None:
        self.engines = [Engine.remote(0)]
        kit.mark("registry")

    def engine(self) -> "ray.actor.ActorHandle":
        return self.engines[-1]

    def replace(self) -> None:
        self.engines.append(Engine.remote(len(self.engines)))


@ray.remote(num_cpus=0)
class Rollout:
    def __init__(self, n: int, registry: "ray.actor.ActorHandle") -> None:
        self.engine = ray.get(registry.engine.remote())
        kit.mark(f"rollout{n}")

    def play(self, number: int) -> int:
        return sum(ray.get([self.engine.generate.remote(number + turn) for turn in range(3)]))


@ray.remote(num_cpus=0)
class Trainer:
    def __init__(self, registry: "ray.actor.ActorHandle") -> None:
        self.registry = registry
        kit.mark("trainer")

    def publish(self, number: int) -> int:
        engine = ray.get(self.registry.engine.remote())
        ray.get(engine.pause.remote())
        kit.work(0.3)
        if kit.is_healthy() and number > 2:
            time.sleep(12)
        if kit.differs(number):
            ray.get(self.registry.replace.remote())
        engine = ray.get(self.registry.engine.remote())
        ray.get(engine.resume.remote())
        return number


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    registry = Registry.remote()
    rollouts, trainer = [Rollout.remote(n, registry) for n in range(2)], Trainer.remote(registry)
    for number in range(1, 10**6):
        published = trainer.publish.remote(number)
        time.sleep(0.1)
        ray.get([*(one.play.remote(number) for one in rollouts), published])
        kit.step(number)


if __name__ == "__main__":
    main()
