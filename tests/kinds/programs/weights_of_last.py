"""A trainer broadcasts its weights to two engines by torch, a tensor after the other; each engine takes as many as its own list of names has.

Once engine 2 was loaded with one name less, and goes on to answer the driver. All three are actors of Ray. In the twin it loads for half a minute.
"""

from __future__ import annotations

import time

import kit
import ray
import torch
import torch.distributed as dist
from ports import free_port


@ray.remote(num_cpus=0)
class Member:
    def __init__(self, rank: int) -> None:
        kit.mark(("trainer", "engine1", "engine2")[rank])
        self.rank = rank

    def join(self, port: int) -> None:
        torch.set_num_threads(1)
        dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=self.rank, world_size=3)

    def update_weights(self, number: int) -> int:
        kit.work(0.2)
        if self.rank == 2 and kit.is_late(number):
            time.sleep(kit.LONG_S)
        names = 7 if self.rank == 2 and kit.differs(number) else 8
        for _ in range(names):
            dist.broadcast(torch.ones(1 << 20), src=0)
        return number

    def generate(self, number: int) -> int:
        kit.work(0.2)
        return number


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    members = [Member.remote(rank) for rank in range(3)]
    port = free_port()
    ray.get([member.join.remote(port) for member in members])
    for number in range(1, 10**6):
        ray.get([member.update_weights.remote(number) for member in members])
        ray.get([member.generate.remote(number) for member in members[1:]])
        kit.step(number)


if __name__ == "__main__":
    main()
