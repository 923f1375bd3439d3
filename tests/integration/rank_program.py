"""A rank of plain torch without Ray: rank 0 waits in a collective for rank 1, which reads a file that nobody writes. Arguments: PORT FIFO."""

from __future__ import annotations

import os
import sys

import torch
import torch.distributed as dist


def score_answers(fifo: str) -> str:
    with open(fifo) as file:
        return file.read()


def train(fifo: str) -> None:
    if dist.get_rank() == 1:
        score_answers(fifo)
    dist.all_reduce(torch.ones(1))


def main() -> None:
    port, fifo = sys.argv[1:]
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world)
    dist.all_reduce(torch.ones(1))
    print("ready", flush=True)
    train(fifo)


if __name__ == "__main__":
    main()
