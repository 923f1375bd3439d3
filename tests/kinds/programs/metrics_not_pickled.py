"""Three ranks sum gradients and then gather their metrics as objects; an error in the metrics is written down and ends no run.

Once rank 2 has a generator among its metrics, which cannot be pickled: it goes on without the gathering. In the twin its metrics take long.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import kit
import torch
import torch.distributed as dist


def gather(step: int, rank: int) -> None:
    metrics: dict[str, Any] = {"step": step, "lengths": [1, 2, 3]}
    if rank == 2 and kit.is_late(step):
        time.sleep(kit.LONG_S)
    if rank == 2 and kit.differs(step):
        metrics["lengths"] = (n for n in (1, 2, 3))
    try:
        dist.all_gather_object([None] * 3, metrics)
    except TypeError as error:
        print(f"no metrics in step {step}: {error}", flush=True)


def rank() -> None:
    number = int(os.environ["RANK"])
    torch.set_num_threads(1)
    kit.mark(f"rank{number}")
    dist.init_process_group("gloo")
    for step in range(1, 10**6):
        kit.work(0.3)
        dist.all_reduce(torch.ones(100_000))
        gather(step, number)
        if number == 0:
            kit.step(step)


def main() -> None:
    kit.begin()
    for one in kit.ranks_as_programs(__file__, 3):
        one.wait()


if __name__ == "__main__":
    main() if "RANK" not in os.environ or len(sys.argv) > 1 else rank()
