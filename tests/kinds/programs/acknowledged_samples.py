"""A sampler, an actor of Ray, yields samples, of which only a few may be ahead of the learner; that one acknowledges some by a call to the sampler.

Once it waits for the end of that call, which stands behind the generator. In the twin it does not wait, and a sample takes long now and then.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import kit
import ray


@ray.remote(num_cpus=0)
class Sampler:
    def __init__(self) -> None:
        kit.mark("sampler")

    @ray.method(_generator_backpressure_num_objects=2)
    def samples(self) -> Iterator[int]:
        for step in range(1, 10**6):
            kit.work(0.2)
            if kit.is_late(step):
                time.sleep(kit.LONG_S)
            yield step

    def acknowledge(self, step: int) -> int:
        return step


@ray.remote(num_cpus=0)
class Learner:
    def __init__(self, sampler: Any) -> None:
        kit.mark("learner")
        self.sampler = sampler

    def learn(self) -> None:
        for reference in self.sampler.samples.remote():
            step = ray.get(reference)
            call = self.sampler.acknowledge.remote(step)
            if kit.differs(step):
                ray.get(call)
            kit.step(step)


@ray.remote(num_cpus=0)
class Evaluator:
    def __init__(self) -> None:
        kit.mark("evaluator")

    def score(self) -> int:
        return 1


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    sampler, evaluator = Sampler.remote(), Evaluator.remote()
    learner = Learner.remote(sampler)
    ray.get(evaluator.score.remote())
    kit.mark("main")
    ray.get(learner.learn.remote())


if __name__ == "__main__":
    main()
