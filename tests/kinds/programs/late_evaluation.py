"""Three ranks start the sum of their gradients early and wait for it late; every few steps all share their metrics as objects."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time

import kit


def beat(rank: int) -> None:
    while True:
        time.sleep(1)
        (kit.folder() / f"alive{rank}").write_text(str(time.time()))


def train(rank: int, port: int) -> None:
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank), WORLD_SIZE="3")
    dist.init_process_group("gloo")
    metrics = dist.new_group()
    threading.Thread(target=beat, args=(rank,), daemon=True).start()
    for step in range(1, 10**6):
        kit.mark(f"rank{rank}")
        if step % 4 == 0 or (rank == 1 and kit.differs(step)):
            told: list[object] = [None] * 3
            dist.all_gather_object(told, {"rank": rank, "step": step}, group=metrics)
        gradients = torch.ones(4096)
        summed = dist.all_reduce(gradients, async_op=True)
        kit.work(0.5)
        summed.wait()
        if rank == 0:
            kit.step(step)


if __name__ == "__main__":
    kit.begin()
    meeting = kit.free_port()
    spawn = multiprocessing.get_context("spawn")
    ranks = [spawn.Process(target=train, args=(rank, meeting)) for rank in range(3)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join()
