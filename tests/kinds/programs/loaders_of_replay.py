"""Two processes of a DataLoader take batches from a queue that a thread of the trainer fills with rollouts, and drop those that teach nothing.

Once a rollout is made for the newest weights only: the trainer waits for a batch instead of the dropped one, the thread for newer weights. In the
twin rollouts are made ahead, slowly.
"""

from __future__ import annotations

import multiprocessing
import random
import threading
import time
import warnings
from collections.abc import Iterator
from typing import Any

import kit
import torch
import torch.utils.data

warnings.simplefilter("ignore")
trained = 0


class Replay(torch.utils.data.IterableDataset[Any]):
    def __init__(self, batches: Any) -> None:
        self.batches = batches

    def __iter__(self) -> Iterator[Any]:
        info = torch.utils.data.get_worker_info()
        assert info
        kit.mark(f"loader{info.id}")
        while True:
            batch = self.batches.get()
            if batch[0] % 5:
                yield batch


def rollouts(batches: Any, renewed: threading.Condition) -> None:
    for version in range(1, 10**6):
        kit.work(0.4)
        if kit.is_healthy() and random.random() < 0.15:
            time.sleep(random.uniform(3, 6))
        if kit.differs(version):
            with renewed:
                while trained < version - 1:
                    renewed.wait()
        batches.put([version] * 8)


def main() -> None:
    global trained
    kit.begin()
    torch.set_num_threads(1)
    batches, renewed = multiprocessing.Queue(4), threading.Condition()
    threading.Thread(target=rollouts, args=(batches, renewed), daemon=True).start()
    loader = torch.utils.data.DataLoader(Replay(batches), batch_size=None, num_workers=2, prefetch_factor=1)
    for number, _ in enumerate(loader, 1):
        kit.work(0.3)
        with renewed:
            trained = number
            renewed.notify_all()
        kit.step(number)


if __name__ == "__main__":
    main()
