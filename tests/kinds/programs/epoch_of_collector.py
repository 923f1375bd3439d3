"""A collector plays prompt after prompt in a thread of its own and hands the episodes to a buffer; the driver looks there until a batch is complete.

The collector goes through the prompts once; they end before the steps do, its thread ends, and its lane answers all who ask for its state. In the
twin the prompts begin anew, and some episodes are long.
"""

import itertools
import threading
import time

import kit
import ray

BATCH = 3
PROMPTS = BATCH * (kit.STEP + 1) + 1


@ray.remote(num_cpus=0)
class Buffer:
    def __init__(self) -> None:
        kit.mark("buffer")
        self.episodes: list[int] = []

    def put(self, episode: int) -> int:
        self.episodes.append(episode)
        return len(self.episodes)

    def batch(self) -> list[int] | None:
        if len(self.episodes) < BATCH:
            return None
        taken, self.episodes = self.episodes[:BATCH], self.episodes[BATCH:]
        return taken


@ray.remote(num_cpus=0)
class Collector:
    def __init__(self, buffer: "ray.actor.ActorHandle") -> None:
        kit.mark("collector")
        self.buffer, self.is_running = buffer, True

    def start(self) -> None:
        threading.Thread(target=self.collect, daemon=True).start()

    def status(self) -> bool:
        return self.is_running

    def collect(self) -> None:
        for prompt in itertools.count() if kit.is_healthy() else range(PROMPTS):
            kit.work(0.4)
            if kit.is_healthy() and prompt % 7 == 6:
                time.sleep(9)
            ray.get(self.buffer.put.remote(prompt))
        self.is_running = False
        kit.differs(kit.STEP)
        kit.mark("collector")


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    buffer = Buffer.remote()
    collector = Collector.remote(buffer)
    ray.get(collector.start.remote())
    for number in range(1, 10**6):
        while ray.get(buffer.batch.remote()) is None:
            time.sleep(0.5)
        ray.get(collector.status.remote())
        kit.work(0.3)
        kit.step(number)


if __name__ == "__main__":
    main()
