"""A thread prefetches batches that two worker processes load, into a short queue; after each epoch the trainer joins it.

Once the trainer has enough before the epoch is over: the thread wants to put one more, and nobody takes it. In the twin a batch is long to load.
"""

from __future__ import annotations

import queue
import threading
import time

import kit
import torch
from torch.utils.data import DataLoader, Dataset

LENGTH = 8


class Episodes(Dataset[torch.Tensor]):
    def __init__(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return LENGTH

    def __getitem__(self, at: int) -> torch.Tensor:
        kit.work(0.1)
        if kit.is_late(self.epoch) and at == 5:
            time.sleep(kit.LONG_S)
        return torch.full((16,), float(at))


def prefetch(epoch: int, batches: queue.Queue[torch.Tensor | None]) -> None:
    for batch in DataLoader(Episodes(epoch), batch_size=1, num_workers=2, multiprocessing_context="fork"):
        batches.put(batch)
    batches.put(None)


def main() -> None:
    kit.begin()
    for epoch in range(1, 10**6):
        batches: queue.Queue[torch.Tensor | None] = queue.Queue(maxsize=2)
        prefetcher = threading.Thread(target=prefetch, args=(epoch, batches), name="prefetch")
        prefetcher.start()
        taken = 0
        while batches.get() is not None:
            taken += 1
            kit.work(0.1)
            if kit.differs(epoch) and taken == 3:
                break
        prefetcher.join()
        kit.step(epoch)


if __name__ == "__main__":
    main()
