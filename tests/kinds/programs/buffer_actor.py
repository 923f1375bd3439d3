"""A Ray actor with two lanes keeps episodes: takers wait inside it until somebody has put one there."""

from __future__ import annotations

import queue

import kit
import ray


@ray.remote(num_cpus=0, max_concurrency=2)
class Buffer:
    def __init__(self) -> None:
        kit.mark("buffer")
        self.episodes: queue.Queue[int] = queue.Queue()

    def put(self, step: int) -> None:
        self.episodes.put(step)

    def take(self) -> int:
        return self.episodes.get()


@ray.remote(num_cpus=0)
class Taker:
    def __init__(self, name: str, buffer: ray.actor.ActorHandle) -> None:
        kit.mark(name)
        self.name, self.buffer = name, buffer

    def train(self, step: int) -> int:
        kit.mark(self.name)
        return int(ray.get(self.buffer.take.remote()))


if __name__ == "__main__":
    kit.begin()
    info = ray.init(num_cpus=2, include_dashboard=False, _temp_dir=str(kit.folder() / "r"), log_to_driver=False, object_store_memory=100 * 2**20)
    buffer = Buffer.remote()
    takers = [Taker.remote(f"taker{n}", buffer) for n in range(2)]
    kit.mark("cluster", address=info["gcs_address"])
    for step in range(1, 10**6):
        kit.work(0.5)
        if kit.differs(step):
            taken = [taker.train.remote(step) for taker in takers]
            kit.work()
        put = [buffer.put.remote(step) for _ in takers]
        ray.get(put)
        ray.get([taker.train.remote(step) for taker in takers])
        kit.step(step)
