"""Trainer, evaluator and buffer in one world of torch's RPC. The trainer calls the evaluator in each round, and tells it to end by a last call.

Once the trainer leaves its rounds by an early stop and goes to `shutdown`, which waits until all members have come there; the evaluator waits for the
word that it has not been given. In the twin a round takes long now and then.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from typing import Any

import kit
import torch.distributed.rpc as rpc

ended = threading.Event()


def evaluate(number: int) -> int:
    kit.work(0.4)
    if kit.is_late(number):
        time.sleep(kit.LONG_S)
    return number


def store(number: int) -> int:
    return number


def end() -> None:
    ended.set()


def train() -> None:
    for number in range(1, 10**6):
        rpc.rpc_sync("buffer", store, args=(number,))
        score = rpc.rpc_sync("evaluator", evaluate, args=(number,))
        kit.step(number)
        if kit.differs(number) and score >= kit.STEP:
            return
    rpc.rpc_sync("evaluator", end)


def rank() -> None:
    name = ("trainer", "evaluator", "buffer")[int(os.environ["RANK"])]
    kit.mark(name)
    at = f"tcp://{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
    options = rpc.TensorPipeRpcBackendOptions(num_worker_threads=2, init_method=at, rpc_timeout=7200)
    rpc.init_rpc(name, rank=int(os.environ["RANK"]), world_size=3, rpc_backend_options=options)
    if name == "trainer":
        train()
        kit.mark(name)
    elif name == "evaluator":
        ended.wait()
    rpc.shutdown(timeout=7200)


def main() -> None:
    kit.begin()
    ranks: list[subprocess.Popen[Any]] = kit.ranks_as_programs(__file__, 3)
    for one in ranks:
        one.wait()


if __name__ == "__main__":
    rank() if "RANK" in os.environ else main()
