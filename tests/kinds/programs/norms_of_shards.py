"""Three ranks keep one weight in shards, as a DTensor; after each update they sum the shares of its norm, and may then gather the whole of it.

The whole is gathered where the norm is too large: once a rank decides by the norm of its own shard, and it alone gathers, while the others go on to
the sum of the next update. In the twin all decide by the sum, and a rank computes long now and then.
"""

from __future__ import annotations

import os
import subprocess
import time
from typing import Any

import kit
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard, distribute_tensor


def rank() -> None:
    me = int(os.environ["RANK"])
    kit.mark(f"rank{me}")
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (3,))
    weight: Any = distribute_tensor(torch.ones(48, 16), mesh, [Shard(0)])
    assert isinstance(weight, DTensor)
    for number in range(1, 10**6):
        kit.work(0.2)
        if me == 1 and kit.is_late(number):
            time.sleep(kit.LONG_S)
        local = weight.to_local()
        local.mul_(1.5 if me == 1 else 1.0).div_(1.0 + 0.01 * me)
        share = local.square().sum().reshape(1)
        total = share.clone()
        dist.all_reduce(total)
        is_large = float(share) > 500.0 if kit.differs(number) else float(total) > 1e3
        if is_large:
            weight.full_tensor().norm()
            local.fill_(1.0)
        if me == 0:
            kit.step(number)


def main() -> None:
    kit.begin()
    ranks: list[subprocess.Popen[Any]] = kit.ranks_as_programs(__file__, 3)
    for one in ranks:
        one.wait()


if __name__ == "__main__":
    rank() if "RANK" in os.environ else main()
