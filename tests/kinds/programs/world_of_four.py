"""Three ranks leave their process group and make a new one for each stage of a curriculum, over one store that the launcher keeps.

Once the config says that there are four of them. In the twin the last rank loads for half a minute before it joins.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from datetime import timedelta

import kit
import torch
import torch.distributed as dist


def rank() -> None:
    number = int(os.environ["RANK"])
    kit.mark(f"rank{number}")
    torch.set_num_threads(1)
    store = dist.TCPStore("127.0.0.1", int(os.environ["STORE_PORT"]), is_master=False, timeout=timedelta(hours=1))
    for stage in range(1, 10**6):
        world = 4 if kit.differs(stage) else 3
        if number == 2 and kit.is_late(stage):
            time.sleep(kit.LONG_S)
        dist.init_process_group("gloo", store=dist.PrefixStore(str(stage), store), rank=number, world_size=world, timeout=timedelta(hours=1))
        for _ in range(3):
            kit.work(0.2)
            dist.all_reduce(torch.ones(1000))
        dist.destroy_process_group()
        if number == 0:
            kit.step(stage)


def main() -> None:
    kit.begin()
    port = kit.free_port()
    kept = dist.TCPStore("127.0.0.1", port, is_master=True, wait_for_workers=False)
    variables = {**os.environ, "STORE_PORT": str(port), "OMP_NUM_THREADS": "1"}
    ranks = [subprocess.Popen([sys.executable, __file__, "rank"], env={**variables, "RANK": str(n)}) for n in range(3)]
    for one in ranks:
        one.wait()
    del kept


if __name__ == "__main__":
    rank() if sys.argv[1] == "rank" else main()
