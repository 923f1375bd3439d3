"""A rollout rank sends its batch to a reward rank, that one sends scores to two trainers, who then tell all the new weights."""

from __future__ import annotations

import os

import kit

REWARD, ROLLOUT = 2, 3


def run(rank: int) -> None:
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    trainers = dist.new_group([0, 1])
    batch, scores, weights = torch.zeros(512), torch.zeros(512), torch.zeros(4096)
    for step in range(1, 10**6):
        kit.work(0.3)
        kit.mark(f"rank{rank}")
        if rank == ROLLOUT:
            dist.isend(batch, REWARD).wait()
        elif rank == REWARD:
            dist.recv(batch, ROLLOUT)
            if not kit.differs(step):
                for trainer in (0, 1):
                    dist.send(scores, trainer)
        else:
            dist.recv(scores, REWARD)
            dist.all_reduce(weights, group=trainers)
        dist.broadcast(weights, 0)
        if rank == 0:
            kit.step(step)


if __name__ == "__main__":
    if "RANK" in os.environ:
        run(int(os.environ["RANK"]))
    else:
        kit.begin()
        for rank in kit.ranks_as_programs(__file__, 4):
            rank.wait()
