"""A driver of coroutines: two tasks of its loop have an engine each and bring its answers into a queue, from which the training takes its batch.

One engine is killed; the error ends the task of its maker, and nobody looks at a task that is over. In the twin some answers are long.
"""

import asyncio
import os
import signal

import kit
import ray

BATCH = 4


@ray.remote(num_cpus=0)
class Engine:
    def __init__(self, n: int) -> None:
        self.n = n
        kit.mark(f"engine{n}")

    async def generate(self, number: int) -> int:
        await asyncio.sleep(kit.pause() * 0.4)
        if self.n == 1 and kit.differs(number):
            os.kill(os.getpid(), signal.SIGKILL)
        if kit.is_healthy() and self.n == 1 and number % 3 == 0:
            await asyncio.sleep(9)
        return number


async def make(engine: "ray.actor.ActorHandle", prompts: "asyncio.Queue[int]", episodes: "asyncio.Queue[int]") -> None:
    while True:
        number = await prompts.get()
        await episodes.put(await engine.generate.remote(number))


async def train(engines: "list[ray.actor.ActorHandle]") -> None:
    prompts: asyncio.Queue[int] = asyncio.Queue()
    episodes: asyncio.Queue[int] = asyncio.Queue(BATCH)
    makers = [asyncio.create_task(make(engine, prompts, episodes)) for engine in engines]
    for number in range(1, 10**6):
        for _ in range(BATCH):
            await prompts.put(number)
        batch = [await episodes.get() for _ in range(BATCH)]
        await asyncio.to_thread(kit.work, 0.1 * len(batch))
        kit.step(number)
    for maker in makers:
        maker.cancel()


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    asyncio.run(train([Engine.remote(n) for n in range(2)]))


if __name__ == "__main__":
    main()
