"""Rank 0 has a thread for each sampler, which receives its batches; the main thread waits for one of each and sends all new weights."""

from __future__ import annotations

import multiprocessing
import queue
import threading

import kit


def receive(source: int, batches: queue.Queue[int]) -> None:
    import torch
    import torch.distributed as dist

    batch = torch.zeros(128)
    while True:
        dist.recv(batch, src=source)
        batches.put(source)


def train() -> None:
    import torch
    import torch.distributed as dist

    batches: dict[int, queue.Queue[int]] = {1: queue.Queue(), 2: queue.Queue()}
    for source, filled in batches.items():
        threading.Thread(target=receive, args=(source, filled), daemon=True, name=f"from-{source}").start()
    for step in range(1, 10**6):
        for source in batches:
            dist.send(torch.ones(128), dst=source, tag=7)
        for filled in batches.values():
            filled.get()
        kit.work(0.3)
        kit.step(step)


def sample(rank: int) -> None:
    import torch
    import torch.distributed as dist

    weights = torch.zeros(128)
    for step in range(1, 10**6):
        dist.recv(weights, src=0, tag=7)
        kit.work()
        if rank == 2 and kit.differs(step):
            kit.mark("rank2")
            with open(kit.fifo("prompts")) as prompts:
                prompts.read()
        dist.send(weights * 2, dst=0)


def run(rank: int, port: int) -> None:
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=3)
    kit.mark(f"rank{rank}")
    if rank == 0:
        train()
    else:
        sample(rank)


if __name__ == "__main__":
    kit.begin()
    spawn = multiprocessing.get_context("spawn")
    meeting = kit.free_port()
    ranks = [spawn.Process(target=run, args=(rank, meeting), name=f"rank-{rank}") for rank in range(3)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join()
