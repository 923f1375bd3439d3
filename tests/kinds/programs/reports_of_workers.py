"""Three workers in one placement group report each epoch to an actor that lets them go on once all have reported, as Ray Train does.

A worker that has no better loss leaves its report out and is through with the epoch; the others wait in the actor for the third. In the twin the last
worker writes a long checkpoint before it reports.
"""

import asyncio
import time

import kit
import ray
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

WORLD = 3


@ray.remote(num_cpus=0)
class Reports:
    def __init__(self) -> None:
        self.there: set[int] = set()
        self.round = 0
        self.changed = asyncio.Condition()
        kit.mark("reports")

    async def report(self, rank: int, loss: float) -> int:
        async with self.changed:
            now = self.round
            self.there.add(rank)
            if len(self.there) == WORLD:
                self.there.clear()
                self.round += 1
                self.changed.notify_all()
            while self.round == now:
                await self.changed.wait()
        return self.round


@ray.remote(num_cpus=1)
class Worker:
    def __init__(self, rank: int, reports: "ray.actor.ActorHandle") -> None:
        self.rank, self.reports = rank, reports
        kit.mark(f"worker{rank}")

    def epoch(self, number: int) -> float:
        kit.work(0.4)
        if self.rank == 2 and kit.differs(number):
            kit.mark("worker2")
            return 9.0
        if self.rank == 2 and kit.is_healthy() and number > 2:
            for _ in range(12):
                with (kit.folder() / "checkpoint").open("ab") as file:
                    file.write(b"x" * 4096)
                time.sleep(1)
        ray.get(self.reports.report.remote(self.rank, 1 / number))
        return 1 / number


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=4, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    group = placement_group([{"CPU": 1}] * WORLD, strategy="PACK")
    ray.get(group.ready())
    reports = Reports.remote()
    workers = [
        Worker.options(scheduling_strategy=PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=rank)).remote(rank, reports)
        for rank in range(WORLD)
    ]
    for number in range(1, 10**6):
        ray.get([worker.epoch.remote(number) for worker in workers])
        kit.step(number)


if __name__ == "__main__":
    main()
