"""Two processes of a DataLoader read a cache under a lock between processes; the trainer renews the cache under the same lock."""

from __future__ import annotations

import multiprocessing
from multiprocessing.synchronize import Lock

import kit
import torch
from torch.utils.data import DataLoader, Dataset, get_worker_info


class Episodes(Dataset[int]):
    def __init__(self, cache: Lock) -> None:
        self.cache = cache

    def __len__(self) -> int:
        return 10**6

    def __getitem__(self, index: int) -> int:
        kit.mark(f"loader{get_worker_info().id}")
        with self.cache:
            kit.work(0.15)
        return index


if __name__ == "__main__":
    kit.begin()
    torch.set_num_threads(1)
    lock = multiprocessing.get_context("spawn").Lock()
    batches = iter(DataLoader(Episodes(lock), batch_size=4, num_workers=2, prefetch_factor=1, multiprocessing_context="spawn"))
    for step in range(1, 10**6):
        next(batches)
        with lock:
            kit.work(0.3)
            if kit.differs(step):
                for _ in range(4):
                    next(batches)
        kit.step(step)
