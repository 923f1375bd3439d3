"""A driver makes an engine, an actor of Ray, for each round, on a node of a zone that it names by its label.

Once it names a zone of which the cluster has no node. In the twin the engine loads for half a minute. A trainer is idle.
"""

from __future__ import annotations

import time

import kit
import ray


@ray.remote(num_cpus=0)
class Trainer:
    def __init__(self) -> None:
        kit.mark("trainer")

    def train(self, step: int) -> int:
        kit.work(0.3)
        return step


@ray.remote(num_cpus=0)
class Engine:
    def __init__(self, step: int) -> None:
        if kit.is_late(step):
            time.sleep(kit.LONG_S)

    def generate(self, step: int) -> int:
        kit.work(0.3)
        return step


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000, labels={"zone": "north"})
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    trainer = Trainer.remote()
    for step in range(1, 10**6):
        zone = "south" if kit.differs(step) else "north"
        if kit.differs(step):
            kit.mark("main")
        engine = Engine.options(label_selector={"zone": zone}).remote(step)
        ray.get(engine.generate.remote(step))
        ray.kill(engine)
        ray.get(trainer.train.remote(step))
        kit.step(step)


if __name__ == "__main__":
    main()
