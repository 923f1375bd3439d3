"""A trainer and a parameter server call each other by torch's RPC, with one thread for calls in each.

Once the server, while it serves a call, asks the trainer for its step, whose one thread serves a call of the server's that asks the server in turn.
In the twin the server merges long now and then.
"""

from __future__ import annotations

import os
import subprocess
import time
from typing import Any

import kit
import torch.distributed.rpc as rpc


def merge(number: int) -> int:
    kit.work(0.3)
    if kit.is_late(number):
        time.sleep(kit.LONG_S)
    if kit.differs(number):
        kit.mark("server")
        return int(rpc.rpc_sync("trainer", weights, args=(number,)))
    return number


def weights(number: int) -> int:
    kit.mark("trainer")
    return int(rpc.rpc_sync("server", scale, args=(number,)))


def scale(number: int) -> int:
    return number * 2


def rank() -> None:
    name = ("trainer", "server")[int(os.environ["RANK"])]
    kit.mark(name)
    at = f"tcp://{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
    rpc.init_rpc(
        name,
        rank=int(os.environ["RANK"]),
        world_size=2,
        rpc_backend_options=rpc.TensorPipeRpcBackendOptions(num_worker_threads=1, init_method=at, rpc_timeout=7200),
    )
    if name == "trainer":
        for number in range(1, 10**6):
            rpc.rpc_sync("server", merge, args=(number,))
            kit.step(number)
    rpc.shutdown()


def main() -> None:
    kit.begin()
    ranks: list[subprocess.Popen[Any]] = kit.ranks_as_programs(__file__, 2)
    for one in ranks:
        one.wait()


if __name__ == "__main__":
    rank() if "RANK" in os.environ else main()
