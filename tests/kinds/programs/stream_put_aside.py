"""A learner, an actor of Ray, reads a sampler's stream, which is at most two samples ahead of it; the driver asks the sampler for its state beside.

Once the learner has enough of a stream in its middle, and puts it aside for later: the sampler's generator stands, and the driver's question stands
behind it. In the twin the learner reads each stream to its end, and takes long now and then. An evaluator is idle then.
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

    @ray.method(num_returns="streaming", _generator_backpressure_num_objects=2)
    def samples(self, number: int) -> Iterator[int]:
        for sample in range(8):
            kit.work(0.1)
            yield sample

    def state(self) -> int:
        return 0


@ray.remote(num_cpus=0)
class Learner:
    def __init__(self, sampler: Any) -> None:
        kit.mark("learner")
        self.sampler = sampler

    def learn(self, number: int) -> int:
        self.stream = self.sampler.samples.remote(number)
        for n, sample in enumerate(self.stream):
            ray.get(sample)
            kit.work(0.2)
            if n == 3 and kit.is_late(number):
                time.sleep(kit.LONG_S / 2)
            if n == 3 and kit.differs(number):
                break
        return number


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    sampler = Sampler.remote()
    learner = Learner.remote(sampler)
    evaluator = Evaluator.remote()
    for number in range(1, 10**6):
        call = learner.learn.remote(number)
        time.sleep(1)
        ray.get(evaluator.evaluate.remote(number))
        ray.get(sampler.state.remote())
        ray.wait([call], timeout=0)
        kit.step(number)


@ray.remote(num_cpus=0)
class Evaluator:
    def __init__(self) -> None:
        kit.mark("evaluator")

    def evaluate(self, number: int) -> int:
        kit.work(0.2)
        return number


if __name__ == "__main__":
    main()
