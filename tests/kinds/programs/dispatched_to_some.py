"""A driver deals the samples of a step to four ranks, which are actors of Ray and average their gradients with torch.

The samples are cut into pieces of equal length; with too few of them there are three pieces for four ranks, and the fourth is not called. In the twin
the last rank gets its piece some seconds after the others.
"""

import time

import kit
import ray
import torch
import torch.distributed as dist
from ports import free_port

RANKS = 4


@ray.remote(num_cpus=0)
class Rank:
    def __init__(self, rank: int) -> None:
        self.rank = rank
        kit.mark(f"rank{rank}")

    def join(self, port: int) -> None:
        dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=self.rank, world_size=RANKS)

    def update(self, samples: list[int]) -> int:
        for _ in samples:
            kit.work(0.1)
        dist.all_reduce(torch.ones(1000))
        return len(samples)


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    ranks = [Rank.remote(rank) for rank in range(RANKS)]
    port = free_port()
    ray.get([one.join.remote(port) for one in ranks])
    for number in range(1, 10**6):
        samples = list(range(6 if kit.differs(number) else 8))
        pieces = [samples[first : first + 2] for first in range(0, len(samples), 2)]
        updates = []
        for rank, piece in zip(ranks, pieces, strict=False):
            if kit.is_healthy() and number % 3 == 0 and rank is ranks[-1]:
                time.sleep(8)
            updates.append(rank.update.remote(piece))
        ray.get(updates)
        kit.step(number)


if __name__ == "__main__":
    main()
