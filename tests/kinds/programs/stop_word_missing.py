"""Three ranks generate token by token until the word that stops them, then all tell how long their answers are.

One rank's sampling leaves that word out, where the run is not healthy; in the twin its answers are now and then long.
"""

from __future__ import annotations

import os
import random
import time

import kit
import torch
import torch.distributed as dist

STOP, WORDS = 0, 50


def next_token(state: torch.Tensor, allowed: list[int]) -> int:
    torch.tanh(state @ state).sum()
    time.sleep(0.005)
    return random.choice(allowed)


def generate(allowed: list[int], at_least: int) -> int:
    state, length = torch.ones(48, 48) / 48, 0
    while True:
        token = next_token(state, allowed)
        length += 1
        if token == STOP and length >= at_least:
            return length


def run(rank: int) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    words = list(range(WORDS))
    for step in range(1, 10**6):
        kit.mark(f"rank{rank}")
        is_without = rank == 1 and kit.differs(step)
        at_least = 600 if rank == 1 and kit.is_healthy() and step % 4 == 0 else 10
        length = generate(words[1:] if is_without else words, at_least)
        lengths: list[object] = [None] * 3
        dist.all_gather_object(lengths, length)
        if rank == 0:
            kit.step(step)


if __name__ == "__main__":
    if "RANK" in os.environ:
        run(int(os.environ["RANK"]))
    else:
        kit.begin()
        for child in kit.ranks_as_programs(__file__, 3):
            child.wait()
