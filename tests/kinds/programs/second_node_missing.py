"""torchrun starts a step's program on its node and meets the other nodes in between; for one step it waits for a node that nobody starts."""

from __future__ import annotations

import os
import subprocess
import sys

import kit


def program() -> None:
    import torch.distributed as dist

    dist.init_process_group("gloo")
    kit.mark(f"rank{dist.get_rank()}")
    kit.work(0.3)
    dist.barrier()
    dist.destroy_process_group()


def launch(nodes: int) -> None:
    port = kit.free_port()
    words = ["-m", "torch.distributed.run", f"--nnodes={nodes}", "--nproc-per-node=2", "--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{port}"]
    child = subprocess.Popen([sys.executable, *words, "--rdzv-id=kit", "--rdzv-conf=join_timeout=100000", __file__, "program"])
    kit.mark("launcher", child.pid)
    child.wait()


if __name__ == "__main__":
    if "program" in sys.argv:
        program()
    else:
        kit.begin()
        os.environ["OMP_NUM_THREADS"] = "1"
        for step in range(1, 10**6):
            launch(2 if kit.differs(step) else 1)
            kit.step(step)
