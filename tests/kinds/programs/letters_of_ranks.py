"""The ranks send their states as objects to rank 0, which answers all with the next plan."""

from __future__ import annotations

import os

import kit
import torch
import torch.distributed as dist


def train(rank: int) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    for step in range(1, 10**6):
        kit.work(0.5)
        kit.mark(f"rank{rank}")
        if rank == 0:
            states: list[object] = [None]
            for other in (1, 2):
                dist.recv_object_list(states, src=other)
        elif not (rank == 2 and kit.differs(step)):
            dist.send_object_list([{"rank": rank, "step": step}], dst=0)
        plan: list[object] = [step]
        dist.broadcast_object_list(plan, src=0)
        if rank == 0:
            kit.step(step)


if __name__ == "__main__":
    if "RANK" in os.environ:
        train(int(os.environ["RANK"]))
    else:
        kit.begin()
        for child in kit.ranks_as_programs(__file__, 3):
            child.wait()
