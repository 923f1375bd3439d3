"""Rounds of a trainer and two judges, who call each other by torch's RPC and leave the round together: who leaves waits until all others leave.

Once a judge waits for an event that nobody sets, after its last call was answered. In the twin it writes its grades for long before it leaves.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from typing import Any

import kit

NAMES = ("trainer", "judge0", "judge1")


def grade(number: int) -> int:
    kit.work(0.2)
    return number % 7


def member(step: int) -> None:
    import torch.distributed.rpc as rpc

    rank = int(os.environ["RANK"])
    at = f"tcp://{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
    kit.mark(NAMES[rank])
    options = rpc.TensorPipeRpcBackendOptions(num_worker_threads=2, init_method=at, rpc_timeout=7200)
    rpc.init_rpc(NAMES[rank], rank=rank, world_size=3, rpc_backend_options=options)
    if rank == 0:
        for one in [rpc.rpc_async(f"judge{n % 2}", grade, args=(n,)) for n in range(4)]:
            one.wait()
    elif rank == 2:
        kit.work(0.3)
        write_grades(step)
    rpc.shutdown()


def write_grades(step: int) -> None:
    written = threading.Event()
    if not kit.differs(step):
        written.set()
    if kit.is_late(step):
        time.sleep(kit.LONG_S)
    written.wait()


def main() -> None:
    kit.begin()
    for step in range(1, 10**6):
        shared = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(kit.free_port()), "OMP_NUM_THREADS": "1"}
        kit.mark("main")
        members: list[subprocess.Popen[Any]] = [
            subprocess.Popen([sys.executable, __file__, "member", str(step)], env={**shared, "RANK": str(rank)}) for rank in range(3)
        ]
        for one in members:
            one.wait()
        kit.step(step)


if __name__ == "__main__":
    member(int(sys.argv[2])) if sys.argv[1] == "member" else main()
