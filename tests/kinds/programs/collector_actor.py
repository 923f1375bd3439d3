"""A Ray actor collects episodes that a rollout actor pushes; the trainer, the driver, takes one whenever there is one."""

from __future__ import annotations

import time
from pathlib import Path

import kit
import ray


@ray.remote(num_cpus=0)
class Collector:
    def __init__(self) -> None:
        kit.mark("collector")
        self.episodes: list[int] = []

    def push(self, step: int) -> None:
        self.episodes.append(step)

    def pop(self) -> int | None:
        return self.episodes.pop(0) if self.episodes else None


@ray.remote(num_cpus=0)
class Rollout:
    def __init__(self, collector: ray.actor.ActorHandle) -> None:
        kit.mark("rollout")
        self.collector = collector

    def run(self) -> None:
        for step in range(1, 10**6):
            kit.work()
            if kit.differs(step):
                kit.mark("rollout")
                self.load_prompts(kit.fifo("prompts"))
            ray.get(self.collector.push.remote(step))

    def load_prompts(self, path: str) -> str:
        return Path(path).read_text()


def next_episode(collector: ray.actor.ActorHandle) -> int:
    while True:
        episode = ray.get(collector.pop.remote())
        if episode is not None:
            return int(episode)
        time.sleep(0.3)


if __name__ == "__main__":
    kit.begin()
    info = ray.init(num_cpus=2, include_dashboard=False, _temp_dir=str(kit.folder() / "r"), log_to_driver=False, object_store_memory=100 * 2**20)
    collector = Collector.remote()
    rollout = Rollout.remote(collector)
    running = rollout.run.remote()
    kit.mark("cluster", address=info["gcs_address"])
    while True:
        step = next_episode(collector)
        kit.mark("main")
        kit.step(step)
