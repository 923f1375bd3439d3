"""Two ranks, actors of Ray; rank 0 asks an evaluator and waits for an event, which a callback on the answer sets: Ray calls it from C++.

Once the evaluator comes to stand at a pipe that nobody writes. In the twin it takes half a minute.
"""

from __future__ import annotations

import threading
import time

import kit
import ray
import torch
import torch.distributed as dist
from ports import free_port


@ray.remote(num_cpus=0)
class Evaluator:
    def __init__(self) -> None:
        kit.mark("evaluator")

    def score(self, number: int) -> float:
        kit.work(0.2)
        if kit.is_late(number):
            time.sleep(kit.LONG_S)
        if kit.differs(number):
            kit.mark("evaluator")
            with open(kit.fifo("answers")) as answers:
                answers.read()
        return number / 2


@ray.remote(num_cpus=0)
class Rank:
    def __init__(self, rank: int, evaluator: ray.actor.ActorHandle) -> None:
        kit.mark(f"rank{rank}")
        self.rank, self.evaluator = rank, evaluator

    def join(self, port: int) -> None:
        dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=self.rank, world_size=2)

    def train(self, number: int) -> int:
        kit.work(0.2)
        if self.rank == 0:
            scored = threading.Event()
            self.evaluator.score.remote(number).future().add_done_callback(lambda _: scored.set())
            scored.wait()
        dist.all_reduce(torch.ones(8))
        return number


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    evaluator = Evaluator.remote()
    ranks = [Rank.remote(rank, evaluator) for rank in range(2)]
    port = free_port()
    ray.get([rank.join.remote(port) for rank in ranks])
    for number in range(1, 10**6):
        ray.get([rank.train.remote(number) for rank in ranks])
        kit.step(number)


if __name__ == "__main__":
    main()
