"""Two programs meet at a port in every round, compute something together, and part again."""

from __future__ import annotations

import os
import subprocess
import sys

import kit
import torch
import torch.distributed as dist


def rounds(rank: int, ports: list[int]) -> None:
    torch.set_num_threads(1)
    for step in range(1, 10**6):
        kit.work(0.5)
        kit.mark(f"rank{rank}")
        port = ports[(step + (1 if rank == 1 and kit.differs(step) else 0)) % len(ports)]
        dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
        for _ in range(5):
            kit.work(0.5)
            dist.all_reduce(torch.ones(8))
        dist.destroy_process_group()
        if rank == 0:
            kit.step(step)


if __name__ == "__main__":
    if "PORTS" in os.environ:
        rounds(int(sys.argv[1]), [int(p) for p in os.environ["PORTS"].split()])
    else:
        kit.begin()
        environment = {**os.environ, "PORTS": " ".join(str(kit.free_port()) for _ in range(4)), "OMP_NUM_THREADS": "1"}
        for child in [subprocess.Popen([sys.executable, __file__, str(rank)], env=environment) for rank in range(2)]:
            child.wait()
