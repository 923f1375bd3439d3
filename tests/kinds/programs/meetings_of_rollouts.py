"""Two trainers and two rollouts, actors of Ray, in one world of torch; rollouts meet among themselves before all take the weights of the first.

One rollout meets in the whole world instead of in its own group. In the twin it loads its environments for long before it meets.
"""

import time

import kit
import ray


@ray.remote(num_cpus=0)
class Member:
    def __init__(self, rank: int, port: int) -> None:
        import torch
        import torch.distributed as dist

        torch.set_num_threads(1)
        self.rank = rank
        dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=4)
        self.rollouts = dist.new_group([2, 3])
        kit.mark(f"member{rank}")

    def take(self, number: int) -> int:
        import torch
        import torch.distributed as dist

        if self.rank >= 2:
            kit.work(0.3)
            if self.rank == 2 and kit.is_late(number):
                time.sleep(kit.LONG_S / 2)
                kit.work(4)
            dist.barrier(group=None if self.rank == 2 and kit.differs(number) else self.rollouts)
        dist.broadcast(torch.ones(4096), src=0)
        return number


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    port = kit.free_port()
    members = [Member.remote(rank, port) for rank in range(4)]
    for number in range(1, 10**6):
        ray.get([one.take.remote(number) for one in members])
        kit.step(number)


if __name__ == "__main__":
    main()
