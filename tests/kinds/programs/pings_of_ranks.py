"""Ranks are actors of Ray with a lane that answers pings; one rank opens a pipe that nobody writes, and all answer pings."""

import os
import threading
import time
from typing import Any

import ray
import torch
import torch.distributed as dist
from kit import begin, differs, fifo, free_port, mark, step, work


@ray.remote(max_concurrency=2)
class Trainer:
    def __init__(self, rank: int, port: int) -> None:
        os.environ.update(RANK=str(rank), WORLD_SIZE="3", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
        self.rank = rank
        mark(f"rank{rank}")

    def join(self) -> None:
        dist.init_process_group("gloo")

    def train(self, number: int) -> float:
        work(0.3)
        if self.rank == 1 and differs(number):
            with open(fifo("data")) as file:
                file.read()
        loss = torch.ones(1)
        dist.all_reduce(loss)
        return float(loss)

    def ping(self) -> int:
        return self.rank


def look(ranks: Any) -> None:
    while True:
        ray.get([one.ping.remote() for one in ranks])
        time.sleep(0.4)


def main() -> None:
    begin()
    ray.init(address="local", num_cpus=3, include_dashboard=False, log_to_driver=False)
    mark("cluster", address=ray.get_runtime_context().gcs_address)
    port = free_port()
    ranks = [Trainer.remote(rank, port) for rank in range(3)]
    ray.get([one.join.remote() for one in ranks])
    threading.Thread(target=look, args=(ranks,), daemon=True).start()
    for number in range(10**6):
        ray.get([one.train.remote(number) for one in ranks])
        step(number)


if __name__ == "__main__":
    main()
