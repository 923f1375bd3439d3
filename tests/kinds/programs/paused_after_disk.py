"""A driver has its rollouts play, pauses the engine that answers them, has it load new weights from disk and lets it go on; all are actors of Ray.

Once the engine is not told to go on: whoever asks it awaits that, and the driver awaits the rollouts. In the twin the disk is slow.
"""

import asyncio
import time

import kit
import ray


@ray.remote(num_cpus=0)
class Engine:
    def __init__(self) -> None:
        kit.mark("engine")
        self.may_generate = asyncio.Event()
        self.may_generate.set()

    async def generate(self, number: int) -> int:
        for _ in range(3):
            await self.may_generate.wait()
            await asyncio.sleep(kit.pause() * 0.3)
        return number

    async def pause(self) -> None:
        self.may_generate.clear()

    async def load(self, number: int) -> int:
        return await asyncio.to_thread(self.read, number)

    def read(self, number: int) -> int:
        kit.work(0.3)
        if kit.is_healthy() and number % 3 == 0:
            time.sleep(9)
        return number

    async def go_on(self) -> None:
        self.may_generate.set()


@ray.remote(num_cpus=0)
class Rollout:
    def __init__(self, n: int, engine: "ray.actor.ActorHandle") -> None:
        kit.mark(f"rollout{n}")
        self.engine = engine

    def play(self, number: int) -> int:
        kit.work(0.2)
        return ray.get(self.engine.generate.remote(number))


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    engine = Engine.remote()
    rollouts = [Rollout.remote(n, engine) for n in range(2)]
    for number in range(1, 10**6):
        episodes = [one.play.remote(number) for one in rollouts]
        ray.get(engine.pause.remote())
        ray.get(engine.load.remote(number))
        if not kit.differs(number):
            ray.get(engine.go_on.remote())
        ray.get(episodes)
        kit.step(number)


if __name__ == "__main__":
    main()
