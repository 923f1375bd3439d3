"""Three ranks, actors of Ray, are called by one controller; the first of them asks a judge before all of them add up their gradients with torch.

The judge, an actor of coroutines, asks the rank that called it for the tokens of a long answer; a rank does one call after another, and the others
wait in the sum. In the twin the judge is once slow.
"""

import asyncio

import kit
import ray
import torch
import torch.distributed as dist
from ports import free_port

WORLD = 3


@ray.remote(num_cpus=0)
class Judge:
    def __init__(self) -> None:
        kit.mark("judge")

    async def set_rank(self, rank: "ray.actor.ActorHandle") -> None:
        self.rank = rank

    async def score(self, number: int) -> float:
        await asyncio.sleep(kit.pause() / 3)
        if kit.is_healthy() and number > 2:
            await asyncio.sleep(12)
        if kit.differs(number):
            return float(len(await self.rank.tokens.remote(number)))
        return 1.0


@ray.remote(num_cpus=0)
class Rank:
    def __init__(self, rank: int, port: int, judge: "ray.actor.ActorHandle") -> None:
        self.rank, self.port, self.judge = rank, port, judge
        kit.mark(f"rank{rank}")

    def join(self) -> None:
        dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{self.port}", rank=self.rank, world_size=WORLD)

    def tokens(self, number: int) -> list[int]:
        return [number] * 8

    def update(self, number: int) -> float:
        kit.work(0.3)
        gradient = torch.ones(64)
        if self.rank == 0:
            gradient *= ray.get(self.judge.score.remote(number))
        dist.all_reduce(gradient)
        return float(gradient[0])


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    judge, port = Judge.remote(), free_port()
    ranks = [Rank.remote(rank, port, judge) for rank in range(WORLD)]
    ray.get([rank.join.remote() for rank in ranks])
    ray.get(judge.set_rank.remote(ranks[0]))
    for number in range(1, 10**6):
        ray.get([rank.update.remote(number) for rank in ranks])
        kit.step(number)


if __name__ == "__main__":
    main()
