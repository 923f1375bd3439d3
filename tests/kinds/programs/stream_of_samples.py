"""A Ray actor yields samples, at most two ahead; the driver takes them one by one, and asks the actor for its state when it has all."""

from __future__ import annotations

from collections.abc import Iterator

import kit
import ray


@ray.remote(num_cpus=0)
class Sampler:
    def __init__(self) -> None:
        kit.mark("sampler")
        self.made = 0

    @ray.method(num_returns="streaming", _generator_backpressure_num_objects=2)
    def play(self) -> Iterator[int]:
        for _ in range(6):
            kit.work(0.4)
            self.made += 1
            yield self.made

    def state(self) -> int:
        return self.made


if __name__ == "__main__":
    kit.begin()
    info = ray.init(num_cpus=2, include_dashboard=False, _temp_dir=str(kit.folder() / "r"), log_to_driver=False, object_store_memory=100 * 2**20)
    sampler = Sampler.remote()
    kit.mark("cluster", address=info["gcs_address"])
    for step in range(1, 10**6):
        for n, sample in enumerate(sampler.play.remote()):
            ray.get(sample)
            kit.work(0.2)
            if n == 1 and kit.differs(step):
                ray.get(sampler.state.remote())
        ray.get(sampler.state.remote())
        kit.step(step)
