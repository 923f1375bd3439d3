"""A sampler fills a short queue of Ray, from which two learners take in one long call each. One of them has died early; the run goes on.

Once the other comes to stand in its update, at a pipe that nobody writes: the queue fills. In the twin its update takes half a minute.
"""

from __future__ import annotations

import os
import time

import kit
import ray
from ray.util.queue import Queue


@ray.remote(num_cpus=0)
class Learner:
    def __init__(self, number: int) -> None:
        kit.mark(f"learner{number}")
        self.number = number

    def learn(self, samples: Queue) -> None:
        for _ in range(10**6):
            number = samples.get()
            kit.work(0.2)
            if self.number == 0 and number >= 2:
                os._exit(9)
            if self.number == 1 and kit.is_late(number):
                time.sleep(kit.LONG_S)
            if self.number == 1 and kit.differs(number):
                kit.mark("learner1")
                with open(kit.fifo("weights")) as weights:
                    weights.read()


@ray.remote(num_cpus=0)
class Sampler:
    def __init__(self) -> None:
        kit.mark("sampler")

    def play(self, number: int, samples: Queue) -> int:
        kit.work(0.3)
        samples.put(number)
        return number


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    samples = Queue(maxsize=2, actor_options={"num_cpus": 0})
    learners, sampler = [Learner.remote(number) for number in range(2)], Sampler.remote()
    running = [learner.learn.remote(samples) for learner in learners]
    for number in range(1, 10**6):
        ray.get(sampler.play.remote(number, samples))
        kit.step(number)
    del running


if __name__ == "__main__":
    main()
