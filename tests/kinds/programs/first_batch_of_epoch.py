"""Two processes of a DataLoader live on over all epochs, and read an epoch's rollouts when the trainer tells by an event that these are complete.

Once the trainer tells so only behind its first batch, which it waits for. In the twin it tells before, and rollouts take long now and then. A
recorder is idle.
"""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from typing import Any

import kit
import torch
import torch.utils.data

warnings.simplefilter("ignore")


class Rollouts(torch.utils.data.IterableDataset[Any]):
    def __init__(self, complete: Any) -> None:
        self.complete = complete

    def __iter__(self) -> Iterator[Any]:
        info = torch.utils.data.get_worker_info()
        assert info
        kit.mark(f"loader{info.id}")
        self.complete.wait()
        for n in range(3):
            kit.work(0.1)
            yield [n] * 8


def main() -> None:
    torch.set_num_threads(1)
    complete = multiprocessing.Event()
    loader = torch.utils.data.DataLoader(Rollouts(complete), batch_size=None, num_workers=2, persistent_workers=True)
    for number in range(1, 10**6):
        complete.clear()
        kit.work(0.2)
        if kit.is_late(number):
            time.sleep(kit.LONG_S)
        differs = kit.differs(number)
        if not differs:
            complete.set()
        for _ in loader:
            complete.set()
        kit.step(number)


if __name__ == "__main__":
    if sys.argv[1] == "recorder":
        kit.mark("recorder")
        sys.stdin.read()
    else:
        kit.begin()
        recorder = subprocess.Popen([sys.executable, __file__, "recorder"], stdin=subprocess.PIPE)
        kit.until_there("recorder")
        main()
