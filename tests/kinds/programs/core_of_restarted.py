"""An engine, an actor of Ray that is made anew when it dies, has one of two cores, a trainer the other one; an evaluator waits for a core.

Once the engine dies, the evaluator gets its core and keeps it when it is through: the engine that is to be made anew never has one. In the twin the
evaluator ends after half a minute.
"""

from __future__ import annotations

import os
import time

import kit
import ray


@ray.remote(num_cpus=1, max_restarts=-1, max_task_retries=-1)
class Engine:
    def __init__(self) -> None:
        kit.mark("engine")

    def generate(self, number: int) -> int:
        kit.work(0.3)
        if number == kit.STEP and not (kit.folder() / "died").exists():
            kit.differs(number)
            (kit.folder() / "died").touch()
            os._exit(9)
        return number


@ray.remote(num_cpus=1)
class Trainer:
    def __init__(self) -> None:
        kit.mark("trainer")

    def train(self, number: int) -> int:
        kit.work(0.3)
        return number


@ray.remote(num_cpus=1)
class Evaluator:
    def __init__(self) -> None:
        kit.mark("evaluator")

    def evaluate(self) -> None:
        if kit.is_healthy():
            time.sleep(kit.LONG_S)
            ray.actor.exit_actor()


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    engine, trainer = Engine.remote(), Trainer.remote()
    ray.get([engine.generate.remote(0), trainer.train.remote(0)])
    evaluator = None
    for number in range(1, 10**6):
        if number == kit.STEP:
            evaluator = Evaluator.remote()
            evaluator.evaluate.remote()
            time.sleep(1)
        ray.get(trainer.train.remote(ray.get(engine.generate.remote(number))))
        kit.step(number)
    del evaluator


if __name__ == "__main__":
    main()
