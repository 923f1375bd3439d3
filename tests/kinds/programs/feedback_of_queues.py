"""A generator fills Ray's queue of samples and then tells in a second one that the group is done; the trainer reads that first.

A group larger than the first queue is never done: one queue is full, the other is empty.
"""

from __future__ import annotations

import ray
from kit import begin, differs, mark, step, work
from ray.util.queue import Queue

PLACES = 2


@ray.remote(num_cpus=0)
class Generator:
    def __init__(self) -> None:
        mark("generator")

    def run(self, samples: Queue, done: Queue) -> None:
        for number in range(1, 10**6):
            mark("generator")
            group = PLACES + 1 if differs(number) else PLACES
            for n in range(group):
                work(0.3)
                samples.put((number, n))
            done.put(group)


@ray.remote(num_cpus=0)
class Trainer:
    def __init__(self) -> None:
        mark("trainer")

    def run(self, samples: Queue, done: Queue) -> None:
        for number in range(1, 10**6):
            mark("trainer")
            for _ in range(done.get()):
                samples.get()
            work(0.3)
            step(number)


@ray.remote(num_cpus=0)
class Judge:
    def __init__(self) -> None:
        mark("judge")

    def score(self) -> float:
        return 0.5


def main() -> None:
    begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    mark("cluster", address=ray.get_runtime_context().gcs_address)
    samples, done = (Queue(maxsize=places, actor_options={"num_cpus": 0}) for places in (PLACES, 1))
    generator, trainer, judge = Generator.remote(), Trainer.remote(), Judge.remote()
    ray.get(judge.score.remote())
    ray.get([generator.run.remote(samples, done), trainer.run.remote(samples, done)])


if __name__ == "__main__":
    main()
