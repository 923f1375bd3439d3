"""An evaluator, an actor of Ray, makes a placement group for each round and has a task scored there; a trainer has a core of the three, it has one.

Once it asks for two bundles, for which one core is left. In the twin a task of the driver has that core for half a minute.
"""

from __future__ import annotations

import time

import kit
import ray
from ray.util.placement_group import placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy


@ray.remote(num_cpus=1)
class Trainer:
    def __init__(self) -> None:
        kit.mark("trainer")

    def train(self, step: int) -> int:
        kit.work(0.3)
        return step


@ray.remote(num_cpus=1)
def score(step: int) -> int:
    kit.work(0.2)
    return step


@ray.remote(num_cpus=1)
def tabulate() -> None:
    kit.mark("table")
    time.sleep(kit.LONG_S)


@ray.remote(num_cpus=1)
class Evaluator:
    def evaluate(self, step: int) -> int:
        kit.mark("evaluator")
        bundles = [{"CPU": 1}] * (2 if kit.differs(step) else 1)
        group = placement_group(bundles)
        ray.get(group.ready())
        placed = PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=0)
        scored = ray.get(score.options(scheduling_strategy=placed).remote(step))
        remove_placement_group(group)
        return int(scored)


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=3, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    trainer, evaluator = Trainer.remote(), Evaluator.remote()
    for step in range(1, 10**6):
        ray.get(trainer.train.remote(step))
        if kit.is_late(step):
            tabulate.remote()
            kit.until_there("table")
        ray.get(evaluator.evaluate.remote(step))
        kit.step(step)


if __name__ == "__main__":
    main()
