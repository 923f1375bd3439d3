"""A rollout actor fills Ray's queue, a training actor empties it."""

from __future__ import annotations

import fcntl

import kit
import ray
from ray.util.queue import Queue


@ray.remote(num_cpus=0)
class Rollout:
    def __init__(self) -> None:
        kit.mark("rollout")

    def run(self, episodes: Queue) -> None:
        for step in range(1, 10**6):
            kit.work()
            if kit.differs(step):
                kit.mark("rollout")
            self.lock_cache()
            episodes.put(step)

    def lock_cache(self) -> None:
        with (kit.folder() / "cache.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)


@ray.remote(num_cpus=0)
class Cleaner:
    def __init__(self) -> None:
        kit.mark("cleaner")

    def clean(self, step: int) -> int:
        self.lock = (kit.folder() / "cache.lock").open("w")
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        if not kit.differs(step):
            self.lock.close()
        return step


@ray.remote(num_cpus=0)
class Trainer:
    def __init__(self) -> None:
        kit.mark("trainer")

    def train(self, episodes: Queue) -> int:
        kit.mark("trainer")
        return int(episodes.get())


if __name__ == "__main__":
    kit.begin()
    info = ray.init(num_cpus=2, include_dashboard=False, _temp_dir=str(kit.folder() / "r"), log_to_driver=False, object_store_memory=100 * 2**20)
    episodes = Queue(actor_options={"num_cpus": 0})
    rollout, trainer, cleaner = Rollout.remote(), Trainer.remote(), Cleaner.remote()
    running = rollout.run.remote(episodes)
    kit.mark("cluster", address=info["gcs_address"])
    for step in range(1, 10**6):
        ray.get(cleaner.clean.remote(step))
        ray.get(trainer.train.remote(episodes))
        kit.step(step)
