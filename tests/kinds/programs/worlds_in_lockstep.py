"""Each rank moves four environments in threads that meet at a barrier; one thread of rank 1 dies, the others wait for it, the main thread for all."""

import os
import queue
import subprocess
import threading
from typing import Any

import torch
import torch.distributed as dist
from kit import begin, differs, mark, ranks_as_programs, step, work


def environment(which: int, meet: threading.Barrier, orders: "queue.Queue[int]", moves: "queue.Queue[float]") -> None:
    while True:
        number = orders.get()
        work(0.2)
        if which == 2 and os.environ["RANK"] == "1" and differs(number):
            raise ValueError("the player has left the board")
        meet.wait()
        moves.put(0.5)


def rank() -> None:
    me = int(os.environ["RANK"])
    dist.init_process_group("gloo")
    mark(f"rank{me}")
    meet = threading.Barrier(4)
    moves: queue.Queue[float] = queue.Queue()
    orders: list[queue.Queue[int]] = [queue.Queue() for _ in range(4)]
    for which in range(4):
        threading.Thread(target=environment, args=(which, meet, orders[which], moves), daemon=True).start()
    for number in range(10**6):
        for one in orders:
            one.put(number)
        total = torch.tensor(sum(moves.get() for _ in range(4)))
        dist.all_reduce(total)
        if me == 0:
            step(number)


def main() -> None:
    begin()
    ranks: list[subprocess.Popen[Any]] = ranks_as_programs(__file__, 2)
    for one in ranks:
        one.wait()


if __name__ == "__main__":
    rank() if "RANK" in os.environ else main()
