"""A trainer broadcasts its weights to two engines in buckets, and takes a word from each by a queue before it sends the next.

Once an engine gives no word for a bucket and comes for the next: the trainer waits for its word, and both engines for the next
bucket. In the twin an engine loads a bucket for long.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from typing import Any

import kit

BUCKETS = 3


def engine(number: int, words: Any) -> None:
    kit.mark(f"engine{number}")
    join(number + 1)
    import torch
    import torch.distributed as dist

    for step in range(1, 10**6):
        kit.work(0.2)
        for bucket in range(BUCKETS):
            dist.broadcast(torch.zeros(256), src=0)
            if number == 1 and bucket == 1 and kit.is_late(step):
                time.sleep(kit.LONG_S)
            if number == 1 and bucket == 1 and kit.differs(step):
                continue
            words.put(number)


def join(rank: int) -> None:
    import torch.distributed as dist

    dist.init_process_group("gloo", rank=rank, world_size=3)


def main() -> None:
    kit.begin()
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(kit.free_port()), "OMP_NUM_THREADS": "1"}
    context = multiprocessing.get_context("spawn")
    words = context.Queue()
    for number in range(2):
        context.Process(target=engine, args=(number, words), daemon=True).start()
    join(0)
    import torch
    import torch.distributed as dist

    for step in range(1, 10**6):
        kit.work(0.3)
        for _ in range(BUCKETS):
            dist.broadcast(torch.ones(256), src=0)
            for _ in range(2):
                words.get()
        kit.step(step)


if __name__ == "__main__":
    main()
