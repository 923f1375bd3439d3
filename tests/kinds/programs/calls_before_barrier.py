"""Two ranks call each other with torch's RPC; rank 1 goes to the barrier of the step under a lock that the call of rank 0 needs.

Once rank 0 calls after rank 1 has taken the lock: it waits for its answer, and rank 1 waits for it at the barrier. In the twin the call takes long.
"""

from __future__ import annotations

import os
import sys
import threading
import time

import kit

parameters = threading.Lock()


def versions_of(step: int) -> int:
    if kit.is_late(step):
        time.sleep(kit.LONG_S)
    with parameters:
        return step


def rank() -> None:
    me = int(os.environ["RANK"])
    kit.mark(f"rank{me}")
    rpc.init_rpc(f"worker{me}", rank=me, world_size=2)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{os.environ['SECOND_PORT']}", rank=me, world_size=2)
    for step in range(1, 10**6):
        if me == 0:
            time.sleep(1.0 if kit.differs(step) else 0.0)
            rpc.rpc_sync("worker1", versions_of, args=(step,), timeout=0)
            dist.barrier()
            kit.step(step)
        elif kit.differs(step):
            with parameters:
                dist.barrier()
        else:
            dist.barrier()
        kit.work(0.2)


def main() -> None:
    kit.begin()
    os.environ["SECOND_PORT"] = str(kit.free_port())
    for one in kit.ranks_as_programs(__file__, 2):
        one.wait()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main()
    else:
        import torch.distributed as dist
        import torch.distributed.rpc as rpc

        rank()
