"""A rollout, an actor of coroutines, keeps its episodes in a queue for threads, with room for two; another call of it takes them out for the driver.

Once a group has four episodes: the third `put` waits for room inside the loop, where whoever takes would have to run. In the twin an answer takes
half a minute.
"""

from __future__ import annotations

import asyncio
import queue

import kit
import ray


@ray.remote(num_cpus=0)
class Rollout:
    def __init__(self) -> None:
        kit.mark("rollout")
        self.episodes: queue.Queue[int] = queue.Queue(2)

    async def play(self, number: int) -> None:
        for _ in range(4 if kit.differs(number) else 2):
            await asyncio.sleep(kit.LONG_S if kit.is_late(number) else 0.2)
            self.episodes.put(number)

    async def take(self) -> int:
        while self.episodes.empty():
            await asyncio.sleep(0.3)
        return self.episodes.get_nowait()


@ray.remote(num_cpus=0)
class Judge:
    def __init__(self) -> None:
        kit.mark("judge")

    def score(self, episode: int) -> int:
        kit.work(0.2)
        return episode


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    rollout, judge = Rollout.remote(), Judge.remote()
    for number in range(1, 10**6):
        playing = rollout.play.remote(number)
        if not kit.differs(number):
            for _ in range(2):
                ray.get(judge.score.remote(rollout.take.remote()))
        ray.get(playing)
        while kit.differs(number):
            ray.get(judge.score.remote(rollout.take.remote()))
        kit.step(number)


if __name__ == "__main__":
    main()
