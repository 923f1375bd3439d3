"""Rank 0 tells all ranks its plan as an object, and in every fourth step sends rank 1 a hint as an object before it.

Rank 1 counts these steps otherwise after a restart and receives a hint where the others share the plan.
"""

from __future__ import annotations

import os

import kit
import torch
import torch.distributed as dist


def is_hint_due(step: int, is_recounted: bool) -> bool:
    return step % 4 == 0 or is_recounted


def run(rank: int) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    for step in range(1, 10**6):
        kit.work(0.3)
        kit.mark(f"rank{rank}")
        is_recounted = rank == 1 and kit.differs(step)
        if rank == 0 and is_hint_due(step, False):
            dist.send_object_list([{"hint": step}], dst=1)
        if rank == 1 and is_hint_due(step, is_recounted):
            dist.recv_object_list([None], src=0)
        plan: list[object] = [{"plan": step} if rank == 0 else None]
        dist.broadcast_object_list(plan, src=0)
        kit.work(0.2)
        dist.all_reduce(torch.ones(256))
        if rank == 0:
            kit.step(step)


if __name__ == "__main__":
    if "RANK" in os.environ:
        run(int(os.environ["RANK"]))
    else:
        kit.begin()
        for child in kit.ranks_as_programs(__file__, 3):
            child.wait()
