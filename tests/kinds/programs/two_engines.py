"""Two engines of two ranks each, all of one kind; a controller has each of them generate in turns."""

from __future__ import annotations

import multiprocessing
from multiprocessing.connection import Connection
from pathlib import Path

import kit


def serve(engine: str, rank: int, port: int, orders: Connection) -> None:
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    kit.mark(f"{engine}{rank}")
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    while True:
        step = [orders.recv() if rank == 0 else 0]
        dist.broadcast_object_list(step, src=0)
        generate(engine, rank, step[0])
        dist.all_reduce(torch.ones(64))
        if rank == 0:
            orders.send(step[0])


def generate(engine: str, rank: int, step: int) -> None:
    kit.work(0.3)
    if engine == "left" and rank == 1 and kit.differs(step):
        kit.mark("left1")
        Path(kit.fifo("adapter")).read_bytes()


if __name__ == "__main__":
    kit.begin()
    spawn = multiprocessing.get_context("spawn")
    ends = []
    for engine in ("left", "right"):
        mine, its = spawn.Pipe()
        port = kit.free_port()
        for rank in range(2):
            spawn.Process(target=serve, args=(engine, rank, port, its), daemon=True).start()
        ends.append(mine)
    for step in range(1, 10**6):
        for end in ends:
            end.send(step)
        for end in reversed(ends):
            end.recv()
        kit.mark("main")
        kit.step(step)
