"""A trainer, an actor of Ray, has a bundle of one core, which it uses itself; it has answers scored by tasks, which need a core each.

Once these tasks are to run in the trainer's own group, as Ray's children do where the group captures them: no core of it is free, one outside is.
In the twin they run outside, one after the other, and each takes long.
"""

from __future__ import annotations

import time

import kit
import ray
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

OUTSIDE = PlacementGroupSchedulingStrategy(placement_group=None)


@ray.remote(num_cpus=1, max_retries=0)
def score(number: int) -> int:
    kit.work(0.3)
    if kit.is_late(number):
        time.sleep(kit.LONG_S)
    return number


@ray.remote(num_cpus=1)
class Trainer:
    def __init__(self) -> None:
        kit.mark("trainer")

    def step(self, number: int) -> int:
        kit.work(0.3)
        task = score if kit.differs(number) else score.options(scheduling_strategy=OUTSIDE)
        return sum(ray.get([task.remote(number) for _ in range(2)]))


@ray.remote(num_cpus=0)
class Logger:
    def __init__(self) -> None:
        kit.mark("logger")

    def log(self, number: int) -> int:
        return number


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    group = placement_group([{"CPU": 1}])
    ray.get(group.ready())
    trainer = Trainer.options(
        scheduling_strategy=PlacementGroupSchedulingStrategy(placement_group=group, placement_group_capture_child_tasks=True)
    ).remote()
    logger = Logger.remote()
    for number in range(1, 10**6):
        ray.get(trainer.step.remote(number))
        ray.get(logger.log.remote(number))
        kit.step(number)


if __name__ == "__main__":
    main()
