"""Ranks that build a kernel once, under a lock file as the builders of extensions use: a killed builder has left its file behind.

Rank 0 does not build and waits for the others in a collective. In the twin a living builder works for long.
"""

import contextlib
import os
import subprocess
import sys
import time

import kit


@contextlib.contextmanager
def built_once(name):
    path = kit.folder() / f"{name}.lock"
    while True:
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL))
            break
        except FileExistsError:
            time.sleep(0.2)
    try:
        yield
    finally:
        path.unlink()


def build(number):
    with built_once(f"kernel{number}"):
        kit.work(0.1)


def left_by_other(number):
    """A builder of an earlier start, killed while it held its lock; the twin's goes on for some seconds."""
    seconds = 8 if kit.is_healthy() else 300
    code = f"import time, lock_left_behind as l\nwith l.built_once('kernel{number}'): time.sleep({seconds})"
    builder = subprocess.Popen([sys.executable, "-c", code])
    while not (kit.folder() / f"kernel{number}.lock").exists():
        time.sleep(0.02)
    if not kit.is_healthy():
        builder.kill()
        builder.wait()


def train():
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    kit.mark(f"rank{rank}")
    for number in range(1, 100000):
        kit.work(0.4)
        kit.mark(f"rank{rank}")
        if rank == 1 and (kit.differs(number) or number == 3):
            left_by_other(number)
        if rank == 1:
            build(number)
        dist.all_reduce(torch.ones(16))
        if rank == 0:
            kit.step(number)


if __name__ == "__main__":
    if "RANK" in os.environ:
        train()
    else:
        kit.begin()
        for child in kit.ranks_as_programs(__file__, 3):
            child.wait()
