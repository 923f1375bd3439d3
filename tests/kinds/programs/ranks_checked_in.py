"""Four ranks check in by a monitored barrier before each step, then gather lengths of answers as objects.

Once rank 0, which has found an empty batch, skips the barrier and goes on to the gathering. In the twin rank 0 compiles long in its place.
"""

from __future__ import annotations

import datetime
import os
import time
from typing import Any

import kit
import torch.distributed as dist


def rank() -> None:
    me = int(os.environ["RANK"])
    dist.init_process_group("gloo", timeout=datetime.timedelta(hours=2))
    kit.mark(f"rank{me}")
    for number in range(1, 10**6):
        kit.work(0.2)
        if me == 0 and kit.is_late(number):
            time.sleep(kit.LONG_S)
        if me or not kit.differs(number):
            dist.monitored_barrier(timeout=datetime.timedelta(hours=2))
        lengths: list[Any] = [None] * 4
        dist.all_gather_object(lengths, me * number)
        if me == 0:
            kit.step(number)


def main() -> None:
    kit.begin()
    for one in kit.ranks_as_programs(__file__, 4):
        one.wait()


if __name__ == "__main__":
    rank() if "RANK" in os.environ else main()
