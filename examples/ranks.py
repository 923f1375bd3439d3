"""A training rank on real gloo collectives; the scenarios change one method of it."""

from __future__ import annotations

import os

import torch
import torch.distributed as dist
from flight_dumps import keep_dumping
from kit import Seat, seat_environment

FATAL_STEP = 3


class PolicyTrainer:
    """One rank of the policy: rolls out, scores, updates, pushes weights, saves."""

    def __init__(self, seat: Seat) -> None:
        self.seat, self.rank = seat, seat.rank
        self.weights = torch.zeros(64)
        seat.sit()

    def pid(self) -> int:
        return os.getpid()

    def setup_distributed(self) -> None:
        self.join_world()

    def join_world(self) -> None:
        seat = self.seat
        if seat.rank_by == "name":
            dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{seat.port}", rank=seat.rank, world_size=seat.world)
        else:
            os.environ.update(seat_environment(seat))
            dist.init_process_group("gloo")
        keep_dumping(seat.rank)

    def rollout_batch(self, step: int) -> None:
        dist.all_gather([torch.zeros(8) for _ in range(self.seat.world)], torch.rand(8))

    def score_batch(self, step: int) -> float:
        reward = torch.rand(1)
        dist.all_reduce(reward)
        return float(reward)

    def update_policy(self, step: int) -> float:
        gradient = torch.rand(64)
        dist.all_reduce(gradient)
        self.weights -= 0.01 * gradient
        return self.gather_metrics()

    def gather_metrics(self) -> float:
        losses = [torch.zeros(1) for _ in range(self.seat.world)]
        dist.all_gather(losses, torch.rand(1))
        return float(sum(losses))

    def push_weights(self, step: int) -> None:
        dist.broadcast(self.weights, src=0)
        dist.barrier()

    def save_shards(self, step: int) -> None:
        torch.save(self.weights, self.seat.path(f"shard_{self.rank}.pt"))
        dist.barrier()

    def shutdown(self, step: int) -> None:
        dist.barrier()
        dist.destroy_process_group()


def others(world: int, *culprits: int) -> tuple[str, ...]:
    """The seats of all ranks but `culprits`, and of the two that only wait for ranks."""
    return (*(f"trainer_{r}" for r in range(world) if r not in culprits), "controller", "driver")
