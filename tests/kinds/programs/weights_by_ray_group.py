"""A trainer gives its weights to two engines, all of them actors, through a group of Ray's collectives; each engine fetches a schedule first.

Once an engine looks for the schedule in a pipe that nobody writes, before it takes part. In the twin an engine compiles for long before it does.
"""

from __future__ import annotations

import time
from typing import Any

import kit
import ray
from ray.util import collective


@ray.remote(num_cpus=0)
class Trainer:
    def __init__(self) -> None:
        kit.mark("trainer")

    def join(self, rank: int) -> None:
        collective.init_collective_group(3, rank, backend="gloo", group_name="weights")

    def send_weights(self, step: int) -> int:
        import torch

        kit.work(0.2)
        collective.broadcast(torch.full((1024,), float(step)), src_rank=0, group_name="weights")
        return step


@ray.remote(num_cpus=0)
class Engine:
    def __init__(self, number: int) -> None:
        kit.mark(f"engine{number}")
        self.number = number

    def join(self, rank: int) -> None:
        collective.init_collective_group(3, rank, backend="gloo", group_name="weights")

    def schedule_of(self, step: int) -> str:
        if self.number == 1 and kit.differs(step):
            return open(kit.fifo("schedule")).read()
        return "all"

    def take_weights(self, step: int) -> str:
        import torch

        schedule = self.schedule_of(step)
        if self.number == 1 and kit.is_late(step):
            time.sleep(kit.LONG_S)
        collective.broadcast(torch.zeros(1024), src_rank=0, group_name="weights")
        return schedule

    def generate(self, step: int) -> int:
        kit.work(0.4)
        return step


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    everybody: list[Any] = [Trainer.remote(), Engine.remote(0), Engine.remote(1)]
    ray.get([one.join.remote(rank) for rank, one in enumerate(everybody)])
    for step in range(1, 10**6):
        kit.mark("main")
        ray.get([one.generate.remote(step) for one in everybody[1:]])
        ray.get([everybody[0].send_weights.remote(step), *(one.take_weights.remote(step) for one in everybody[1:])])
        kit.step(step)


if __name__ == "__main__":
    main()
