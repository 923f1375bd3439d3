"""A learner gives work to two agents by torch's RPC, which have one thread for calls each; an agent asks the other one for its opinion now and then.

Once both ask at the same time, each within a call: the questions wait for the threads that ask. In the twin an opinion takes long.
"""

from __future__ import annotations

import os
import sys
import time

import kit


def opinion(step: int) -> int:
    if kit.is_late(step):
        time.sleep(kit.LONG_S)
    return step


def play(me: int, step: int) -> int:
    kit.work(0.1)
    if kit.differs(step):
        time.sleep(1.0)
        return int(rpc.rpc_sync(f"agent{1 - me}", opinion, args=(step,), timeout=0))
    if kit.is_late(step) and me == 0:
        return int(rpc.rpc_sync("agent1", opinion, args=(step,), timeout=0))
    return step


def rank() -> None:
    me = int(os.environ["RANK"])
    name = "learner" if me == 2 else f"agent{me}"
    kit.mark(name)
    options = rpc.TensorPipeRpcBackendOptions(num_worker_threads=1 if me < 2 else 4)
    rpc.init_rpc(name, rank=me, world_size=3, rpc_backend_options=options)
    for step in range(1, 10**6 if me == 2 else 1):
        asked = [rpc.rpc_async(f"agent{n}", play, args=(n, step), timeout=0) for n in range(2)]
        for one in asked:
            one.wait()
        kit.work(0.2)
        kit.step(step)
    rpc.shutdown()


def main() -> None:
    kit.begin()
    for one in kit.ranks_as_programs(__file__, 3):
        one.wait()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main()
    else:
        import torch.distributed.rpc as rpc

        rank()
