"""A learner and a rollout call each other by torch's remote calls, each with one thread that answers.

To play, the rollout asks the learner for its weights. Once the learner asks the rollout for its version before it answers: that thread plays.
"""

from __future__ import annotations

import multiprocessing
import os

import kit
import torch.distributed.rpc as rpc
from ports import free_port


def version() -> int:
    return 1


def weights(number: int) -> int:
    kit.work(0.2)
    return rpc.rpc_sync("rollout", version, timeout=0) if kit.differs(number) else number


def play(number: int) -> int:
    kit.work(0.5)
    return int(rpc.rpc_sync("learner", weights, args=(number,), timeout=0))


def join(name: str, rank: int, port: int) -> None:
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    options = rpc.TensorPipeRpcBackendOptions(num_worker_threads=1, rpc_timeout=10**5, init_method=f"tcp://127.0.0.1:{port}")
    rpc.init_rpc(name, rank=rank, world_size=2, rpc_backend_options=options)


def roll_out(port: int) -> None:
    kit.mark("rollout")
    join("rollout", 1, port)
    rpc.shutdown()


if __name__ == "__main__":
    kit.begin()
    port = free_port()
    multiprocessing.get_context("spawn").Process(target=roll_out, args=(port,), daemon=True).start()
    join("learner", 0, port)
    for number in range(1, 10**6):
        rpc.rpc_sync("rollout", play, args=(number,), timeout=0)
        kit.step(number)
