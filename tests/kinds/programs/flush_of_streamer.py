"""An actor of Ray streams episodes, at most two ahead of who reads them; the driver reads some and then asks the same actor to flush its buffer.

The actor has one thread, and its generator stands until the driver reads on; the driver waits for the flush. In the twin the driver reads all of them
first, one by one.
"""

from __future__ import annotations

from collections.abc import Iterator

import kit
import ray


@ray.remote(num_cpus=0)
class Sampler:
    def __init__(self) -> None:
        kit.mark("sampler")

    @ray.method(num_returns="streaming", _generator_backpressure_num_objects=2)
    def episodes(self, number: int) -> Iterator[int]:
        for episode in range(6):
            kit.work(0.2)
            yield episode

    def flush(self) -> int:
        kit.work(3.0 if kit.is_healthy() else 0.3)
        return 0


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    sampler = Sampler.remote()
    for number in range(1, 10**6):
        for n, episode in enumerate(sampler.episodes.remote(number)):
            ray.get(episode)
            kit.work(0.3)
            if n == 1 and kit.differs(number):
                ray.get(sampler.flush.remote())
        ray.get(sampler.flush.remote())
        kit.step(number)


if __name__ == "__main__":
    main()
