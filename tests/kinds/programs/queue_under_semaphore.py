"""A driver with a loop lets two rollouts at a time ask a player, an actor that takes its tasks from a queue of Ray; the driver fills the queue.

Once the coroutine that fills the queue needs one of the two places, which both rollouts hold that wait for the player. In the twin it
needs none, and a task is long.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

import kit
import ray
from ray.util.queue import Queue


@ray.remote(num_cpus=0, max_concurrency=2)
class Player:
    def __init__(self, tasks: Any) -> None:
        kit.mark("player")
        self.tasks = tasks

    def play(self, step: int, number: int) -> int:
        task = self.tasks.get(block=True)
        kit.work(0.2)
        if kit.is_late(step) and number == 1:
            time.sleep(kit.LONG_S)
        return int(task)


async def run(player: Any, tasks: Any) -> None:
    for step in range(1, 10**6):
        places = asyncio.Semaphore(2)

        async def play(number: int, step: int = step, places: asyncio.Semaphore = places) -> int:
            async with places:
                return int(await player.play.remote(step, number))

        async def fill(step: int = step, places: asyncio.Semaphore = places) -> None:
            if kit.differs(step):
                await asyncio.sleep(1)
                async with places:
                    await tasks.put_async(0)
            for number in range(4):
                await tasks.put_async(number)

        kit.mark("main")
        await asyncio.gather(*(play(number) for number in range(4)), fill())
        kit.step(step)


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    tasks = Queue(actor_options={"num_cpus": 0})
    asyncio.run(run(Player.remote(tasks), tasks))


if __name__ == "__main__":
    main()
