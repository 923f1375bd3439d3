"""Three actors add up their gradients by Ray's own collectives; the driver has all of them make one step.

The loss of one is once no number: it leaves out the sum and is through, while the others wait in it. In the twin that one is slow.
"""

import time

import kit
import ray
import torch
from ray.util import collective


@ray.remote(num_cpus=0)
class Trainer:
    def __init__(self, rank: int) -> None:
        self.rank = rank
        kit.mark(f"trainer{rank}")

    def train(self, number: int) -> int:
        kit.work(0.3)
        if self.rank == 2 and kit.differs(number):
            return number
        if self.rank == 2 and number % 3 == 0:
            time.sleep(3)
        collective.allreduce(torch.ones(1000), group_name="gradients")
        return number


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    trainers = [Trainer.remote(rank) for rank in range(3)]
    collective.create_collective_group(trainers, 3, [0, 1, 2], backend="gloo", group_name="gradients")
    for number in range(1, 10**6):
        ray.get([one.train.remote(number) for one in trainers])
        kit.step(number)


if __name__ == "__main__":
    main()
