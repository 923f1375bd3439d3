"""Each round makes two engines anew; trainer and engines, actors of Ray, then meet in a new world of torch for the weights.

An evaluator of an earlier round keeps its core: the second engine is never placed, and the others wait for it where they meet. In the twin
the evaluator ends after some seconds.
"""

import kit
import ray
import torch
import torch.distributed as dist
from ports import free_port

ENGINES = 2


class Member:
    def meet(self, rank: int, port: int) -> float:
        kit.mark(f"{type(self).__name__.lower()}{rank}")
        dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=ENGINES + 1)
        weights = torch.ones(1000) * rank
        dist.broadcast(weights, 0)
        dist.destroy_process_group()
        return float(weights.sum())


@ray.remote(num_cpus=1)
class Trainer(Member):
    pass


@ray.remote(num_cpus=1)
class Engine(Member):
    pass


@ray.remote(num_cpus=1)
class Evaluator:
    def __init__(self) -> None:
        kit.mark("evaluator")

    def evaluate(self, rounds: int) -> int:
        for _ in range(rounds):
            kit.work(0.8)
        return rounds

    def evaluate_and_end(self, rounds: int) -> None:
        self.evaluate(rounds)
        ray.actor.exit_actor()


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=3, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    trainer = Trainer.remote()
    for number in range(1, 10**6):
        if kit.differs(number):
            evaluator = Evaluator.options(lifetime="detached", name=f"evaluator{number}").remote()
            ray.get(evaluator.evaluate.remote(1))
        elif kit.is_healthy() and number % 2 == 0:
            evaluator = Evaluator.remote()
            ray.get(evaluator.evaluate.remote(1))
            evaluator.evaluate_and_end.remote(12)
        engines = [Engine.remote() for _ in range(ENGINES)]
        port = free_port()
        ray.get([one.meet.remote(rank, port) for rank, one in enumerate([trainer, *engines])])
        for one in engines:
            ray.kill(one)
        kit.step(number)


if __name__ == "__main__":
    main()
