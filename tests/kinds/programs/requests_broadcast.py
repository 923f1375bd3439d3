"""Three ranks of an engine step together: the first takes requests from a pipe, gives them to all, and puts tokens into a pipe to a detokenizer.

Once the detokenizer opens a table of words that is a pipe without a writer; the first fills the pipe of tokens and comes no more to the
others. In the twin the detokenizer makes room again after long.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import kit

TOKENS = 200_000


def detokenizer() -> None:
    kit.mark("detokenizer")
    done = 0
    while sys.stdin.buffer.read(TOKENS):
        done += 1
        if kit.differs(done):
            kit.mark("detokenizer")
            Path(kit.fifo("words")).read_text()
        if kit.is_late(done):
            time.sleep(kit.LONG_S)


def rank() -> None:
    import torch
    import torch.distributed as dist

    me = int(os.environ["RANK"])
    kit.mark(f"rank{me}")
    dist.init_process_group("gloo")
    for step in range(1, 10**6):
        asked: list[Any] = [os.read(int(os.environ["REQUESTS"]), 16) if me == 0 else None]
        dist.broadcast_object_list(asked, src=0)
        kit.work(0.2)
        logits = torch.ones(32)
        dist.all_reduce(logits)
        if me == 0:
            os.write(int(os.environ["TOKENS"]), b"t" * TOKENS)
            kit.step(step)


def main() -> None:
    kit.begin()
    requests, asking = os.pipe()
    taking, tokens = os.pipe()
    child = subprocess.Popen([sys.executable, __file__, "detokenizer"], stdin=taking)
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(kit.free_port()), "WORLD_SIZE": "3", "OMP_NUM_THREADS": "1"}
    pipes = {"REQUESTS": str(requests), "TOKENS": str(tokens)}
    for n in range(3):
        ours = (requests, tokens) if n == 0 else ()
        subprocess.Popen([sys.executable, __file__], env={**os.environ, **shared, **pipes, "RANK": str(n)}, pass_fds=ours)
    for one in (requests, taking, tokens):
        os.close(one)
    while True:
        os.write(asking, b"0123456789abcdef")
        time.sleep(0.01)
        if child.poll() is not None:
            return


if __name__ == "__main__":
    if "RANK" in os.environ:
        rank()
    elif sys.argv[1] == "detokenizer":
        detokenizer()
    else:
        main()
