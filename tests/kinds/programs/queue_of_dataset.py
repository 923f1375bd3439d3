"""A trainer reads batches by a DataLoader whose worker takes samples from a queue of processes; a thread of the trainer makes them.

Once this thread ends by an error. The worker waits for a sample, and the trainer for the worker. In the twin a sample is long in the making.
"""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Iterator
from typing import Any

import kit
import torch
from torch.utils.data import DataLoader, IterableDataset

EACH = 4


class Samples(IterableDataset[torch.Tensor]):
    def __init__(self, samples: Any) -> None:
        self.samples = samples

    def __iter__(self) -> Iterator[torch.Tensor]:
        kit.mark("loader")
        while True:
            yield torch.full((8,), float(self.samples.get()))


def make(samples: Any) -> None:
    for step in range(1, 10**6):
        for _ in range(EACH):
            kit.work(0.1)
            if kit.differs(step):
                raise ValueError("no reward for this one")
            if kit.is_late(step):
                time.sleep(kit.LONG_S / EACH)
            samples.put(step)


def main() -> None:
    kit.begin()
    samples = multiprocessing.get_context("fork").Queue(maxsize=2)
    loader = iter(DataLoader(Samples(samples), batch_size=EACH, num_workers=1, prefetch_factor=2, multiprocessing_context="fork"))
    time.sleep(1)
    threading.Thread(target=make, args=(samples,), name="maker", daemon=True).start()
    for step in range(1, 10**6):
        next(loader)
        kit.work(0.2)
        kit.step(step)


if __name__ == "__main__":
    main()
