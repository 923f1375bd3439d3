"""Two processes of a DataLoader keep the next batches ready; the trainer locks the folder of checkpoints, as a program that copies them does."""

from __future__ import annotations

import fcntl
import multiprocessing
import threading

import kit
import torch
from torch.utils.data import DataLoader, Dataset, get_worker_info


class Prompts(Dataset):
    def __len__(self) -> int:
        return 10**6

    def __getitem__(self, index: int) -> torch.Tensor:
        info = get_worker_info()
        kit.mark(f"loader{info.id if info else ''}")
        return torch.full((8,), float(index))


def copy_checkpoints() -> None:
    kit.mark("copier")
    step = 0
    while True:
        step += 1
        with (kit.folder() / "checkpoints.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            kit.work(0.2)
            if kit.differs(step):
                kit.mark("copier")
                threading.Event().wait()
        kit.work(0.2)


def save_checkpoint() -> None:
    with (kit.folder() / "checkpoints.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)


if __name__ == "__main__":
    kit.begin()
    multiprocessing.get_context("spawn").Process(target=copy_checkpoints, daemon=True).start()
    for step, _batch in enumerate(DataLoader(Prompts(), batch_size=4, num_workers=2, persistent_workers=True), 1):
        kit.work(0.3)
        kit.mark("main")
        save_checkpoint()
        kit.step(step)
