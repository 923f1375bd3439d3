"""A driver asks two replicas of an engine, asynchronous actors, for answers, and puts them to sleep while it updates; then it wakes them.

Once it puts them to sleep when most answers are there, and waits for the last before the update: it comes from a replica that sleeps. In the twin all
answers are awaited first, and one is long.
"""

from __future__ import annotations

import asyncio

import kit
import ray

ASKED = 4


@ray.remote(num_cpus=0)
class Replica:
    def __init__(self, number: int) -> None:
        kit.mark(f"replica{number}")
        self.number = number
        self.awake = asyncio.Event()
        self.awake.set()

    async def generate(self, step: int, number: int) -> int:
        await asyncio.sleep(kit.pause() * 0.2)
        if number == 3 and kit.differs(step):
            await asyncio.sleep(4)
        if number == 3 and kit.is_late(step):
            await asyncio.sleep(kit.LONG_S)
        await self.awake.wait()
        await asyncio.sleep(0.1)
        return number

    async def sleep(self) -> None:
        self.awake.clear()

    async def wake_up(self) -> None:
        self.awake.set()


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    replicas = [Replica.remote(n) for n in range(2)]
    for step in range(1, 10**6):
        kit.mark("main")
        answers = [replicas[n % 2].generate.remote(step, n) for n in range(ASKED)]
        if kit.is_healthy():
            ray.get(answers)
        else:
            ray.wait(answers, num_returns=ASKED - 1)
        if kit.is_healthy() or step >= kit.STEP:
            ray.get([one.sleep.remote() for one in replicas])
        ray.get(answers)
        kit.work(0.3)
        ray.get([one.wake_up.remote() for one in replicas])
        kit.step(step)


if __name__ == "__main__":
    main()
