"""A Ray actor of coroutines: two may generate at a time, one may take new weights; each waits until the other side is done."""

from __future__ import annotations

import asyncio

import kit
import ray


@ray.remote(num_cpus=0, concurrency_groups={"generate": 2, "control": 1})
class Engine:
    def __init__(self) -> None:
        kit.mark("engine")
        self.version = 0
        self.running = 0
        self.idle = asyncio.Event()
        self.fresh = asyncio.Condition()

    @ray.method(concurrency_group="generate")
    async def generate(self, step: int) -> int:
        self.running += 1
        self.idle.clear()
        if kit.differs(step):
            kit.mark("engine")
            async with self.fresh:
                await self.fresh.wait_for(lambda: self.version >= step)
        await asyncio.sleep(kit.pause() * 0.4)
        self.running -= 1
        if self.running == 0:
            self.idle.set()
        return step

    @ray.method(concurrency_group="control")
    async def take_weights(self, step: int) -> None:
        await asyncio.sleep(0.1)
        if self.running:
            await self.idle.wait()
        self.version = step
        async with self.fresh:
            self.fresh.notify_all()


if __name__ == "__main__":
    kit.begin()
    info = ray.init(num_cpus=2, include_dashboard=False, _temp_dir=str(kit.folder() / "r"), log_to_driver=False, object_store_memory=100 * 2**20)
    engine = Engine.remote()
    kit.mark("cluster", address=info["gcs_address"])
    for step in range(1, 10**6):
        answers = [engine.generate.remote(step) for _ in range(4)]
        engine.take_weights.remote(step)
        ray.get(answers)
        kit.step(step)
