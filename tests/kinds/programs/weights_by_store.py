"""Two trainers sum gradients; an engine beside them gets versions by torch's store: it waits for a key of each, and says by another when it is free.

Once rank 1 waits until the engine is free before it sums, rank 0 sums before it sets the key, and the engine says that it is free when it has seen
the key. In the twin rank 1 takes long before it sums.
"""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
import time

import kit
import torch
import torch.distributed as dist

LONG = datetime.timedelta(hours=2)


def engine(port: int) -> None:
    kit.mark("engine")
    store = dist.TCPStore("127.0.0.1", port, is_master=False, timeout=LONG)
    for version in range(1, 10**6):
        store.wait([f"weights{version}"], LONG)
        kit.work(0.2)
        store.set(f"free{version}", "1")


def rank() -> None:
    me, port = int(os.environ["RANK"]), int(os.environ["STORE"])
    store = dist.TCPStore("127.0.0.1", port, is_master=me == 0, timeout=LONG, wait_for_workers=False)
    dist.init_process_group("gloo", timeout=LONG)
    kit.mark(f"rank{me}")
    for step in range(1, 10**6):
        kit.work(0.2)
        if me == 1 and kit.is_late(step):
            time.sleep(kit.LONG_S)
        wanted = step if kit.differs(step) else step - 1
        if me == 1 and wanted:
            store.wait([f"free{wanted}"], LONG)
        dist.all_reduce(torch.ones(8))
        if me == 0:
            store.set(f"weights{step}", "1")
            kit.step(step)


def main() -> None:
    kit.begin()
    port = kit.free_port()
    os.environ["STORE"] = str(port)
    ranks = kit.ranks_as_programs(__file__, 2)
    kit.until_there("rank1")
    subprocess.Popen([sys.executable, __file__, "engine", str(port)])
    for one in ranks:
        one.wait()


if __name__ == "__main__":
    if sys.argv[1:2] == ["engine"]:
        engine(int(sys.argv[2]))
    else:
        rank() if "RANK" in os.environ else main()
