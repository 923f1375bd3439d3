"""An async actor plans, and has each plan checked by a task. The cluster has two cores: one is the planner's, one a table's.

The checks need no core of their own at first; later they ask for one, which the planner itself holds while it waits for them.
"""

import asyncio
import random

import kit
import ray


@ray.remote
def check(number: int) -> int:
    kit.work(0.3)
    return number


@ray.remote(num_cpus=1)
class Planner:
    def __init__(self) -> None:
        kit.mark("planner")

    async def plan(self, number: int) -> int:
        cores = 1 if kit.differs(number) else 0
        if kit.is_healthy() and random.random() < 0.15:
            await asyncio.sleep(random.uniform(1, 3))
        return await check.options(num_cpus=cores).remote(number)


@ray.remote(num_cpus=1)
class Table:
    def __init__(self) -> None:
        kit.mark("table")
        self.rows: list[int] = []

    def add(self, row: int) -> int:
        self.rows.append(row)
        return len(self.rows)


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    planner, table = Planner.remote(), Table.remote()
    for number in range(1, 10**6):
        ray.get(table.add.remote(ray.get(planner.plan.remote(number))))
        kit.step(number)


if __name__ == "__main__":
    main()
