"""A trainer reads batches by a DataLoader of two processes; its sampler takes the indices from a queue that the trainer fills.

Four batches are asked for ahead. Once nothing is put there: the sampler waits in the trainer itself. In the twin a part takes half a minute.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Iterator

import kit
import torch
from torch.utils.data import DataLoader, Dataset, Sampler


class Replay(Dataset):
    def __getitem__(self, index: int) -> torch.Tensor:
        if kit.is_late(index):
            time.sleep(kit.LONG_S)
        return torch.full((1000,), float(index))


class Priorities(Sampler):
    def __init__(self) -> None:
        self.rounds: queue.Queue[list[list[int]]] = queue.Queue()

    def __iter__(self) -> Iterator[list[int]]:
        while True:
            yield from self.rounds.get()


def main() -> None:
    kit.begin()
    torch.set_num_threads(1)
    priorities = Priorities()

    def tell(n: int) -> None:
        kit.mark(f"loader{n}")

    priorities.rounds.put([[0, 0]] * 4)
    batches = iter(DataLoader(Replay(), batch_sampler=priorities, num_workers=2, worker_init_fn=tell, multiprocessing_context="fork"))
    for step in range(1, 10**6):
        if kit.differs(step):
            kit.mark("main")
        else:
            priorities.rounds.put([[step, step]])
        next(batches)
        kit.work(0.3)
        kit.step(step)


if __name__ == "__main__":
    main()
