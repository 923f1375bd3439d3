"""An async actor gives two permits for a slow tool. Two rollouts and an evaluator take one, use the tool and give it back.

The evaluator's answer is once refused; it puts the error into its log, and keeps its permit, twice. It is idle then, the rollouts wait for a permit.
"""

import asyncio
import random

import kit
import ray


@ray.remote(num_cpus=0, max_concurrency=20)
class Permits:
    def __init__(self) -> None:
        kit.mark("permits")
        self.free = asyncio.Semaphore(2)

    async def take(self) -> None:
        await self.free.acquire()
        if kit.is_healthy() and random.random() < 0.1:
            await asyncio.sleep(random.uniform(1, 3))

    async def give_back(self) -> None:
        self.free.release()


@ray.remote(num_cpus=0)
class Client:
    def __init__(self, name: str, permits: "ray.actor.ActorHandle") -> None:
        self.permits = permits
        kit.mark(name)

    def use_tool(self, number: int, is_refused: bool) -> int:
        ray.get(self.permits.take.remote())
        try:
            kit.work(0.4)
            if is_refused:
                raise ValueError("not an answer")
            ray.get(self.permits.give_back.remote())
        except ValueError as error:
            print(error, flush=True)
        return number


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    permits = Permits.remote()
    rollouts = [Client.remote(f"rollout{n}", permits) for n in range(2)]
    evaluator = Client.remote("evaluator", permits)
    for number in range(1, 10**6):
        ray.get([one.use_tool.remote(number, False) for one in rollouts])
        is_refused = kit.differs(number)
        ray.get([evaluator.use_tool.remote(number, is_refused) for _ in range(2)])
        kit.step(number)


if __name__ == "__main__":
    main()
