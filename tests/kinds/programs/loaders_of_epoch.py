"""Each epoch has a new DataLoader of two forked processes, which look words up under a lock; a thread of the trainer renews the words under it.

A process that is forked while the thread has the lock waits for it for ever. A third process waits for metrics.
"""

from __future__ import annotations

import multiprocessing
import threading
import time
from multiprocessing.connection import Connection

import kit
import torch
from torch.utils.data import DataLoader, Dataset

WORDS = threading.Lock()


class Prompts(Dataset):
    def __len__(self) -> int:
        return 24

    def __getitem__(self, index: int) -> torch.Tensor:
        with WORDS:
            return torch.full((8,), float(index))


class Renewal:
    """A thread that has the lock while it renews the words of an epoch."""

    def __init__(self) -> None:
        self.asked, self.has_it = threading.Event(), threading.Event()
        self.epoch = 0

    def run(self) -> None:
        while True:
            self.asked.wait()
            self.asked.clear()
            if kit.differs(self.epoch):
                with WORDS:
                    self.has_it.set()
                    self.until_loaders_run()
            else:
                self.has_it.set()
                self.until_loaders_run()
                with WORDS:
                    time.sleep(1.0)

    def until_loaders_run(self) -> None:
        while any(kit.until_there(f"loader{n}")["epoch"] != self.epoch for n in range(2)):
            time.sleep(0.05)

    def begin(self, epoch: int) -> None:
        self.epoch = epoch
        self.has_it.clear()
        self.asked.set()
        self.has_it.wait()


def write_metrics(metrics: Connection) -> None:
    kit.mark("meter")
    while True:
        metrics.recv()


def main() -> None:
    kit.begin()
    torch.set_num_threads(1)
    metrics, of_meter = multiprocessing.Pipe()
    multiprocessing.get_context("spawn").Process(target=write_metrics, args=(of_meter,), daemon=True).start()
    kit.until_there("meter")
    renewal = Renewal()
    threading.Thread(target=renewal.run, name="renewal", daemon=True).start()
    for epoch in range(1, 10**6):
        renewal.begin(epoch)

        def tell(n: int, epoch: int = epoch) -> None:
            kit.mark(f"loader{n}", epoch=epoch)

        for _batch in DataLoader(Prompts(), batch_size=4, num_workers=2, worker_init_fn=tell, multiprocessing_context="fork"):
            kit.work(0.2)
        metrics.send(epoch)
        kit.step(epoch)


if __name__ == "__main__":
    main()
