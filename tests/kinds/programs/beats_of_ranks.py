"""Ranks, actors of Ray, tell a monitor by a thread of their own that they are alive; before each round the driver asks it for a beat of all.

Once the thread of one rank ends by an error, and its rank goes on answering calls. In the twin all beat, and a rank is slow now and then.
"""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import kit
import ray


@ray.remote(num_cpus=0)
class Monitor:
    def __init__(self, world: int) -> None:
        kit.mark("monitor")
        self.world, self.beaten, self.all_beat = world, set[int](), asyncio.Event()

    async def beat(self, rank: int) -> None:
        self.beaten.add(rank)
        if len(self.beaten) == self.world:
            self.all_beat.set()

    async def all_alive(self) -> None:
        self.beaten.clear()
        self.all_beat.clear()
        await self.all_beat.wait()


@ray.remote(num_cpus=0)
class Rank:
    def __init__(self, rank: int, monitor: Any) -> None:
        kit.mark(f"rank{rank}")
        self.rank, self.monitor, self.steps = rank, monitor, 0
        threading.Thread(target=self.beats, name="beats", daemon=True).start()

    def beats(self) -> None:
        while True:
            time.sleep(0.7)
            if self.rank == 1 and kit.differs(self.steps):
                return
            ray.get(self.monitor.beat.remote(self.rank))

    def update(self) -> int:
        self.steps += 1
        kit.work(0.3)
        if self.rank == 1 and kit.is_late(self.steps):
            time.sleep(kit.LONG_S)
        return self.steps


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    monitor = Monitor.remote(3)
    ranks = [Rank.remote(rank, monitor) for rank in range(3)]
    for number in range(1, 10**6):
        kit.mark("main")
        ray.get(monitor.all_alive.remote())
        ray.get([one.update.remote() for one in ranks])
        kit.step(number)


if __name__ == "__main__":
    main()
