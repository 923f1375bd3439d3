"""A learner and an actor talk by torch's RPC, each with one thread that answers.

The learner asks for episodes, and to make them the actor asks for weights; the learner has them, but to hand them out it asks for the actor's version.
The actor's only thread is busy with the episodes. In the twin the version is known and the episodes are slow.
"""

from __future__ import annotations

import os
import subprocess
import sys

import kit
import torch
import torch.distributed.rpc as rpc
from ports import free_port


def episodes(number: int) -> int:
    kit.work(0.5)
    if kit.is_healthy() and number % 2:
        kit.work(3.0)
    return int(rpc.rpc_sync("learner", weights, args=(number,), timeout=10**6)[0])


def weights(number: int) -> torch.Tensor:
    if kit.differs(number):
        return torch.full((4,), float(rpc.rpc_sync("actor", version, args=(number,), timeout=10**6)))
    return torch.full((4,), float(number))


def version(number: int) -> int:
    return number


def main() -> None:
    rank = int(os.environ.get("RANK", "0"))
    if rank == 0:
        kit.begin()
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()), WORLD_SIZE="2")
        subprocess.Popen([sys.executable, __file__], env={**os.environ, "RANK": "1"})
    else:
        kit.mark("actor")
    options = rpc.TensorPipeRpcBackendOptions(num_worker_threads=1, rpc_timeout=10**6)
    rpc.init_rpc(("learner", "actor")[rank], rank=rank, world_size=2, rpc_backend_options=options)
    if rank == 0:
        for number in range(1, 10**6):
            rpc.rpc_sync("actor", episodes, args=(number,), timeout=10**6)
            kit.step(number)
    rpc.shutdown()


if __name__ == "__main__":
    main()
