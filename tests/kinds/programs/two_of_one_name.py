"""Two rollouts meet at an actor that they get by its name, or make. An evaluator uses a counter that is alone.

Once they look in different namespaces: each has made its own meeting point, and each of these waits for a second visitor.
"""

import asyncio
import random

import kit
import ray


@ray.remote(num_cpus=0, max_concurrency=10)
class Meeting:
    def __init__(self) -> None:
        self.visitors = 0
        self.complete = asyncio.Event()

    async def meet(self) -> int:
        self.visitors += 1
        if self.visitors == 2:
            self.complete.set()
        await self.complete.wait()
        return self.visitors


@ray.remote(num_cpus=0)
class Rollout:
    def __init__(self, n: int) -> None:
        self.n = n
        kit.mark(f"rollout{n}")

    def play(self, number: int) -> int:
        kit.work(0.4)
        if kit.is_healthy() and random.random() < 0.15:
            kit.work(2)
        namespace = f"of{self.n}" if kit.differs(number) else "common"
        meeting = Meeting.options(name=f"step{number}", namespace=namespace, get_if_exists=True).remote()
        return ray.get(meeting.meet.remote())


@ray.remote(num_cpus=0)
class Counter:
    def __init__(self) -> None:
        kit.mark("counter")
        self.count = 0

    def add(self) -> int:
        self.count += 1
        return self.count


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    rollouts, counter = [Rollout.remote(n) for n in range(2)], Counter.remote()
    for number in range(1, 10**6):
        ray.get([one.play.remote(number) for one in rollouts])
        ray.get(counter.add.remote())
        kit.step(number)


if __name__ == "__main__":
    main()
