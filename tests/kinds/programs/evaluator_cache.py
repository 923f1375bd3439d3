"""Three ranks evaluate now and then; the group for that is made when it is first needed and kept for some steps."""

from __future__ import annotations

import multiprocessing
from typing import Any

import kit


class Evaluator:
    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.kept: dict[int, Any] = {}

    def group(self, step: int) -> Any:
        import torch.distributed as dist

        key = step if self.rank == 0 and kit.differs(step) else step // 2
        if key not in self.kept:
            self.kept[key] = dist.new_group([0, 1, 2], group_desc="evaluation")
        return self.kept[key]


def run(rank: int, port: int) -> None:
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=3)
    evaluator = Evaluator(rank)
    for step in range(1, 10**6):
        kit.work(0.5)
        kit.mark(f"rank{rank}")
        everything = torch.zeros(12)
        dist.all_gather_into_tensor(everything, torch.ones(4), group=evaluator.group(step))
        if rank == 0:
            kit.step(step)


if __name__ == "__main__":
    kit.begin()
    spawn = multiprocessing.get_context("spawn")
    meeting = kit.free_port()
    ranks = [spawn.Process(target=run, args=(rank, meeting), name=f"trainer-{rank}") for rank in range(3)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join()
