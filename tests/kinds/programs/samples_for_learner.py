"""A sampler puts samples into a short queue of Ray, a learner takes them out in one long call, which nobody fetches.

The learner dies in its update, as one that has used up its memory. The sampler waits for room, the driver for the sampler. In the twin the
learner evaluates for half a minute.
"""

from __future__ import annotations

import os
import time

import kit
import ray
from ray.util.queue import Queue


@ray.remote(num_cpus=0)
class Learner:
    def __init__(self) -> None:
        kit.mark("learner")

    def learn(self, samples: Queue) -> None:
        for number in range(1, 10**6):
            samples.get()
            kit.work(0.4)
            if kit.is_late(number):
                time.sleep(kit.LONG_S)
            if kit.differs(number):
                os._exit(9)


@ray.remote(num_cpus=0)
class Sampler:
    def __init__(self) -> None:
        kit.mark("sampler")

    def play(self, number: int, samples: Queue) -> int:
        kit.work(0.3)
        samples.put([number] * 100)
        return number


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    samples = Queue(maxsize=4, actor_options={"num_cpus": 0})
    learner, sampler = Learner.remote(), Sampler.remote()
    running = learner.learn.remote(samples)
    for number in range(1, 10**6):
        ray.get(sampler.play.remote(number, samples))
        kit.step(number)
    del running


if __name__ == "__main__":
    main()
