"""Three ranks gather the prompts at the first one, which asks for answers and writes a file that the weights may be taken; all look for that file.

A rank without prompts of its own returns before the gathering and looks for the file. In the twin it plays long before it gathers.
"""

from __future__ import annotations

import os
import time
from typing import Any

import kit
import torch
import torch.distributed as dist


def rollout(rank: int, step: int) -> list[str]:
    prompts = [] if rank == 2 and kit.differs(step) else [f"{rank} {step}"]
    if not prompts:
        return []
    if rank == 2 and kit.is_late(step):
        for _ in range(12):
            kit.work()
    gathered: list[Any] | None = [None] * 3 if rank == 0 else None
    dist.gather_object(prompts, gathered, dst=0)
    answers = [[f"answer to {one}" for one in gathered or []]]
    dist.broadcast_object_list(answers, src=0)
    return answers[0]


def wait_for(path: str) -> None:
    while not os.path.exists(path):
        time.sleep(0.1)


def train(rank: int) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    for step in range(1, 10**6):
        kit.mark(f"rank{rank}")
        kit.work(0.4)
        rollout(rank, step)
        ready = str(kit.folder() / f"ready.{step}")
        if rank == 0:
            open(ready, "w").close()
            kit.step(step)
        wait_for(ready)
        dist.all_reduce(torch.ones(16))


if __name__ == "__main__":
    if "RANK" in os.environ:
        train(int(os.environ["RANK"]))
    else:
        kit.begin()
        for child in kit.ranks_as_programs(__file__, 3):
            child.wait()
