"""A launcher gives its three ranks one pipe for what they print; a shipper writes it to a log, under a lock that an archiver takes too.

Usually the archiver takes the lock, moves the log and gives it back. Once the launcher asks it to keep the log until the step is done: the
shipper waits for the lock, the ranks for room in the pipe. In the twin the archiver takes half a minute.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time

import kit
import torch
import torch.distributed as dist
from ports import free_port


def rank() -> None:
    number = int(os.environ["RANK"])
    kit.mark(f"rank{number}")
    dist.init_process_group("gloo")
    for step in range(1, 10**6):
        for part in range(4):
            kit.work(0.05)
            print(f"rank {number} step {step} part {part} " + "0.125 " * 3000, flush=True)
            dist.all_reduce(torch.ones(8))
        if number == 0:
            print(f"done {step}", file=sys.stderr, flush=True)


def ship() -> None:
    kit.mark("shipper")
    for line in sys.stdin:
        with (kit.folder() / "run.log").open("a") as log:
            fcntl.flock(log, fcntl.LOCK_EX)
            log.write(line[:40] + "\n")


def archive() -> None:
    kit.mark("archiver")
    for line in sys.stdin:
        with (kit.folder() / "run.log").open("a") as log:
            fcntl.flock(log, fcntl.LOCK_EX)
            time.sleep(kit.LONG_S if kit.is_late(int(line.split()[1])) else 0.1)
            if line.startswith("keep"):
                sys.stdin.readline()
            print("archived", flush=True)


def main() -> None:
    kit.begin()
    ours = [sys.executable, __file__]
    shipper = subprocess.Popen([*ours, "ship"], stdin=subprocess.PIPE)
    archiver = subprocess.Popen([*ours, "archive"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    kit.until_there("archiver")
    port = free_port()
    read, write = os.pipe()
    for number in range(3):
        variables = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": "3", "RANK": str(number), "OMP_NUM_THREADS": "1"}
        subprocess.Popen([*ours, "rank"], env={**os.environ, **variables}, stdout=shipper.stdin, stderr=write if number == 0 else None)
    os.close(write)
    shipper.stdin.close()
    with os.fdopen(read) as steps:
        for number, _ in enumerate(filter(lambda line: line.startswith("done"), steps), 1):
            kit.step(number)
            if kit.differs(number):
                print("keep", number, file=archiver.stdin, flush=True)
                continue
            print("archive", number, file=archiver.stdin, flush=True)
            archiver.stdout.readline()


if __name__ == "__main__":
    {"rank": rank, "ship": ship, "archive": archive}.get(sys.argv[1], main)()
