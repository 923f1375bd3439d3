"""A rollout, an actor of Ray, puts samples into Ray's queue, which has room for four; the driver takes them while it plays.

Once the driver waits for the end of the rollout's round before it takes any of six. In the twin whoever takes them learns for half a minute.
"""

from __future__ import annotations

import time

import kit
import ray
from ray.util.queue import Queue


@ray.remote(num_cpus=0)
class Rollout:
    def __init__(self, samples: Queue) -> None:
        self.samples = samples

    def play(self, step: int, count: int) -> int:
        kit.mark("rollout")
        for _ in range(count):
            kit.work(0.1)
            self.samples.put(step)
        return count


@ray.remote(num_cpus=0)
class Critic:
    def __init__(self) -> None:
        kit.mark("critic")

    def learn(self, step: int) -> float:
        return kit.work(0.3)


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    samples = Queue(maxsize=4, actor_options={"num_cpus": 0})
    rollout, critic = Rollout.remote(samples), Critic.remote()
    for step in range(1, 10**6):
        round_ = rollout.play.remote(step, 6)
        if kit.is_late(step):
            time.sleep(kit.LONG_S)
        if kit.differs(step):
            kit.mark("main")
            ray.get(round_)
        for _ in range(6):
            samples.get()
        ray.get(round_)
        ray.get(critic.learn.remote(step))
        kit.step(step)


if __name__ == "__main__":
    main()
