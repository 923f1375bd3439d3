"""Four ranks in two data-parallel pairs; each pair meets before it writes its shard, then the world goes on."""

from __future__ import annotations

import kit
import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def run(rank: int, port: int) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=4)
    pairs = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    for step in range(1, 10**6):
        kit.work(0.5)
        kit.mark(f"rank{rank}")
        save_shard(step, rank, None if rank == 2 and kit.differs(step) else pairs[rank // 2])
        dist.all_reduce(torch.ones(512))
        if rank == 0:
            kit.step(step)


def save_shard(step: int, rank: int, group: dist.ProcessGroup | None) -> None:
    dist.barrier(group=group)
    (kit.folder() / f"shard_{rank}").write_bytes(bytes(step % 256 for _ in range(100_000)))


if __name__ == "__main__":
    kit.begin()
    mp.spawn(run, args=(kit.free_port(),), nprocs=4)
