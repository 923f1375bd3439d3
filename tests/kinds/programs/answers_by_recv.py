"""A thread of rank 1 answers requests that rank 0 sends in a group of their own, while its main thread is in the step with all ranks.

Once that thread opens a table that is a pipe without a writer before it answers. In the twin it takes long.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path

import kit


def answer() -> None:
    asked = torch.zeros(1)
    while True:
        dist.recv(asked, src=0, group=side)
        step = int(asked.item())
        if kit.differs(step):
            Path(kit.fifo("table")).read_text()
        if kit.is_late(step):
            time.sleep(kit.LONG_S)
        dist.send(asked, dst=0, group=side)


def rank() -> None:
    me = int(os.environ["RANK"])
    kit.mark(f"rank{me}")
    if me == 1:
        threading.Thread(target=answer, name="answers", daemon=True).start()
    for step in range(1, 10**6):
        if me == 0:
            dist.send(torch.full((1,), float(step)), dst=1, group=side)
            dist.recv(torch.zeros(1), src=1, group=side)
        kit.work(0.2)
        dist.all_reduce(torch.ones(8))
        if me == 0:
            kit.step(step)


def main() -> None:
    kit.begin()
    for one in kit.ranks_as_programs(__file__, 3):
        one.wait()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main()
    else:
        import torch
        import torch.distributed as dist

        dist.init_process_group("gloo")
        side = dist.new_group([0, 1])
        rank()
