"""Two ranks save with torch's asynchronous checkpoint: a thread of the library writes, while the main thread goes on until the next save.

Rank 1's disk takes nothing once, here a named pipe. In the twin it takes half a minute.
"""

from __future__ import annotations

import multiprocessing
import time

import kit


def run(rank: int, file: str) -> None:
    import torch
    import torch.distributed as dist
    from torch.distributed.checkpoint import FileSystemWriter, async_save

    class Disk(FileSystemWriter):
        def write_data(self, *given, **named):  # type: ignore[no-untyped-def]
            if rank == 1 and kit.is_late(number):
                time.sleep(kit.LONG_S)
            if rank == 1 and kit.differs(number):
                with open(kit.fifo("disk")) as disk:
                    disk.read()
            return super().write_data(*given, **named)

    torch.set_num_threads(1)
    dist.init_process_group("gloo", store=dist.FileStore(file, 2), rank=rank, world_size=2)
    kit.mark(f"rank{rank}")
    saving = None
    for number in range(1, 10**6):
        kit.work(0.4)
        if saving is not None:
            saving.result()
        kit.mark(f"rank{rank}")
        dist.all_reduce(torch.ones(1))
        writer = Disk(str(kit.folder() / f"saved{number % 2}"), overwrite=True)
        saving = async_save({"weights": torch.ones(64), "own": {f"rank{rank}": torch.ones(8)}}, storage_writer=writer)
        if rank == 0:
            kit.step(number)


if __name__ == "__main__":
    kit.begin()
    spawn = multiprocessing.get_context("spawn")
    ranks = [spawn.Process(target=run, args=(rank, str(kit.folder() / "store"))) for rank in range(2)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join()
