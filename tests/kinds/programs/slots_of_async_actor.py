"""Agents of Ray ask an asynchronous actor for one of its two sandboxes, and give it back with another call; at most two calls of it run at once.

Two agents wait inside of their `take` calls for a sandbox, and take both places: the `give` of a third is not begun. In the twin the actor may run
many calls, and the third keeps its sandboxes for some seconds.
"""

from __future__ import annotations

import asyncio
import time

import kit
import ray


@ray.remote(num_cpus=0)
class Sandboxes:
    def __init__(self) -> None:
        kit.mark("sandboxes")
        self.free = asyncio.Semaphore(2)

    async def take(self) -> bool:
        return await self.free.acquire()

    async def give(self) -> None:
        self.free.release()


@ray.remote(num_cpus=0)
class Agent:
    def __init__(self, name: str, sandboxes: ray.actor.ActorHandle) -> None:
        kit.mark(name)
        self.sandboxes = sandboxes

    def solve(self, seconds: float, count: int) -> int:
        for _ in range(count):
            ray.get(self.sandboxes.take.remote())
        time.sleep(seconds)
        for _ in range(count):
            ray.get(self.sandboxes.give.remote())
        return count


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    sandboxes = Sandboxes.options(max_concurrency=1000 if kit.is_healthy() else 2).remote()
    agents = [Agent.remote(f"agent{n}", sandboxes) for n in range(3)]
    for number in range(1, 10**6):
        if kit.is_healthy() or kit.differs(number):
            greedy = agents[0].solve.remote(5.0 if kit.is_healthy() else 2.0, 2)
            time.sleep(0.7)
            ray.get([greedy, *(agent.solve.remote(0.1, 1) for agent in agents[1:])])
        else:
            for agent in agents:
                ray.get(agent.solve.remote(0.3, 1))
        kit.step(number)


if __name__ == "__main__":
    main()
