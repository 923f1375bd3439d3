"""Three ranks write checkpoints in a thread behind the training; these threads meet in a group of their own when all have written."""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import Any

import kit


def save(rank: int, step: int, group: Any) -> None:
    import torch.distributed as dist

    kit.work()
    if rank == 2 and step % 4 == 2:
        time.sleep(9.0)  # storage is slow at times
    if rank == 1 and kit.differs(step):
        kit.mark("rank1")
        with open(kit.fifo("store")) as storage:
            storage.read()
    (kit.folder() / f"shard-{rank}").write_text(str(step))
    dist.barrier(group)


def run(rank: int) -> None:
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    group = dist.new_group(list(range(dist.get_world_size())), group_desc="checkpoint")
    kit.mark(f"rank{rank}")
    saver: threading.Thread | None = None
    for step in range(1, 10**6):
        kit.work(0.5)
        dist.all_reduce(torch.ones(256))
        if saver is not None:
            saver.join()
        saver = threading.Thread(target=save, args=(rank, step, group), name="saver")
        saver.start()
        if rank == 0:
            kit.step(step)


if __name__ == "__main__":
    if "RANK" in os.environ:
        run(int(os.environ["RANK"]))
    else:
        kit.begin()
        for process in kit.ranks_as_programs(__file__, 3):
            process.wait()
        sys.exit(1)
