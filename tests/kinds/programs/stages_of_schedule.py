"""Three stages of torch's own pipelining run a schedule of micro-batches, and then all add up their metrics.

Once the middle stage has no valid batch and leaves the schedule out; the first waits for a gradient from it, the last for activations. In the twin
the middle stage compiles for half a minute.
"""

from __future__ import annotations

import multiprocessing
import time

import kit


def run(rank: int, file: str) -> None:
    import torch
    import torch.distributed as dist
    from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

    torch.set_num_threads(1)
    dist.init_process_group("gloo", store=dist.FileStore(file, 3), rank=rank, world_size=3)
    kit.mark(f"rank{rank}")
    layer = torch.nn.Linear(16, 16)
    stage = PipelineStage(layer, rank, 3, torch.device("cpu"))
    schedule = ScheduleGPipe(stage, n_microbatches=4, loss_fn=torch.nn.functional.mse_loss)
    for number in range(1, 10**6):
        kit.work(0.4)
        if rank == 1 and kit.is_late(number):
            time.sleep(kit.LONG_S)
        if rank == 0:
            schedule.step(torch.randn(8, 16))
        elif rank == 2:
            schedule.step(target=torch.randn(8, 16))
        elif not kit.differs(number):
            schedule.step()
        layer.zero_grad()
        kit.mark(f"rank{rank}")
        dist.all_reduce(torch.ones(1))
        if rank == 0:
            kit.step(number)


if __name__ == "__main__":
    kit.begin()
    spawn = multiprocessing.get_context("spawn")
    ranks = [spawn.Process(target=run, args=(rank, str(kit.folder() / "store"))) for rank in range(3)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join()
