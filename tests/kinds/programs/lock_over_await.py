"""A buffer, an actor of coroutines, guards its episodes by a lock for threads; two rollouts add to it, and it has each episode scored first.

Once it keeps the lock while it awaits the score, and the next call takes the lock in the same thread. In the twin a score takes half a minute.
"""

from __future__ import annotations

import threading
import time

import kit
import ray


@ray.remote(num_cpus=0)
class Scorer:
    def __init__(self) -> None:
        kit.mark("scorer")

    def score(self, step: int) -> float:
        if kit.is_late(step):
            time.sleep(kit.LONG_S)
        return kit.work(0.3) + (1.0 if kit.differs(step) else 0.0)


@ray.remote(num_cpus=0)
class Buffer:
    def __init__(self, scorer: ray.actor.ActorHandle) -> None:
        self.scorer, self.lock = scorer, threading.Lock()
        self.episodes: list[tuple[int, float]] = []

    async def add(self, step: int) -> int:
        if kit.differs(step):
            kit.mark("buffer")
            with self.lock:
                score = await self.scorer.score.remote(step)
                self.episodes.append((step, score))
                return len(self.episodes)
        score = await self.scorer.score.remote(step)
        with self.lock:
            self.episodes.append((step, score))
            return len(self.episodes)


@ray.remote(num_cpus=0)
class Rollout:
    def __init__(self, number: int, buffer: ray.actor.ActorHandle) -> None:
        kit.mark(f"rollout{number}")
        self.buffer = buffer

    def play(self, step: int) -> int:
        kit.work(0.02)
        return int(ray.get(self.buffer.add.remote(step)))


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    buffer = Buffer.remote(Scorer.remote())
    rollouts = [Rollout.remote(n, buffer) for n in range(2)]
    for step in range(1, 10**6):
        ray.get([rollout.play.remote(step) for rollout in rollouts])
        kit.step(step)


if __name__ == "__main__":
    main()
