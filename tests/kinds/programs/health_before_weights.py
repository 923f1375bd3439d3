"""A trainer sends its weights to two engines in a broadcast of torch; all three are actors of Ray, and an engine does one call after another.

Usually the trainer asks for the engines' health and then has them receive. Once it has them receive first: its question stands behind that call, the
broadcast waits for the trainer. In the twin the trainer compiles before it sends, while the engines wait in the broadcast.
"""

import time

import kit
import ray
import torch
import torch.distributed as dist
from ports import free_port


class Member:
    def join(self, rank: int, port: int) -> None:
        dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=3)


@ray.remote(num_cpus=0)
class Engine(Member):
    def __init__(self, rank: int) -> None:
        kit.mark(f"engine{rank}")

    def health(self) -> bool:
        return True

    def receive(self, number: int) -> int:
        dist.broadcast(torch.zeros(1000), 0)
        return number


@ray.remote(num_cpus=0)
class Trainer(Member):
    def __init__(self, engines: "list[ray.actor.ActorHandle]") -> None:
        kit.mark("trainer")
        self.engines = engines

    def train(self, number: int) -> int:
        kit.work(0.5)
        if not kit.differs(number):
            ray.get([one.health.remote() for one in self.engines])
        received = [one.receive.remote(number) for one in self.engines]
        if kit.differs(number):
            ray.get([one.health.remote() for one in self.engines])
        if kit.is_healthy() and number % 3 == 0:
            time.sleep(9)
        dist.broadcast(torch.ones(1000), 0)
        ray.get(received)
        return number


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    engines = [Engine.remote(rank) for rank in (1, 2)]
    trainer = Trainer.remote(engines)
    port = free_port()
    ray.get([one.join.remote(rank, port) for rank, one in enumerate([trainer, *engines])])
    for number in range(1, 10**6):
        ray.get(trainer.train.remote(number))
        kit.step(number)


if __name__ == "__main__":
    main()
