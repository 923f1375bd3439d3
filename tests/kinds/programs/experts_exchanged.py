"""Four ranks exchange tokens between two experts each by `all_to_all_single`, and then all add up their gradients.

The last rank adds up first, as its own configuration overlaps the two. In the twin it compiles a kernel for long, in a program of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys

import kit
import torch
import torch.distributed as dist

COMPILER = "import time\nuntil = time.monotonic() + 14\nwhile time.monotonic() < until: sum(range(9999))\ntime.sleep(9)"


def train(rank: int) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    experts = [dist.new_group(ranks) for ranks in ([0, 1], [2, 3])][rank // 2]
    for step in range(1, 10**6):
        kit.mark(f"rank{rank}")
        kit.work(0.2)
        if rank == 3 and kit.is_late(step):
            subprocess.run([sys.executable, "-c", COMPILER], check=True)
        gradients, tokens = torch.ones(4096), torch.ones(64)
        if rank == 3 and kit.differs(step):
            dist.all_reduce(gradients)
            dist.all_to_all_single(torch.empty(64), tokens, group=experts)
        else:
            dist.all_to_all_single(torch.empty(64), tokens, group=experts)
            dist.all_reduce(gradients)
        if rank == 0:
            kit.step(step)


if __name__ == "__main__":
    if "RANK" in os.environ:
        train(int(os.environ["RANK"]))
    else:
        kit.begin()
        for child in kit.ranks_as_programs(__file__, 4):
            child.wait()
