"""Hangs of ranks that wait for work begun earlier: ``work.wait()`` and DDP's backward pass sleep in C, without a frame of the collective."""

from __future__ import annotations

import os
import threading
import time
from typing import Any

import torch
import torch.distributed as dist
from kit import Stage, scenario
from ranks import FATAL_STEP, PolicyTrainer, others


def open_on_hung_mount(path: str) -> None:
    """A FIFO that nobody writes to: its open never comes back."""
    os.mkfifo(path)
    with open(path, "rb") as file:
        file.read(8)


class OverlapsGradients(PolicyTrainer):
    def update_policy(self, step: int) -> float:
        if step == FATAL_STEP and self.rank == 2:
            self.seat.arrive()
            return self.gather_metrics()
        gradient = torch.rand(64)
        work = dist.all_reduce(gradient, async_op=True)
        self.log_step()
        work.wait()
        return self.gather_metrics()

    def gather_metrics(self) -> float:
        pending = [dist.all_reduce(torch.rand(64), async_op=True)]
        for work in pending:
            work.wait()
        dist.barrier()
        return 0.0

    def log_step(self) -> None:
        """What overlaps with the collective."""


@scenario(
    story="Gradients are reduced in the background; rank 2 skips them, is one collective behind the others, and all wait for their work objects.",
    cause="collective-mismatch",
    phase="update",
    culprits=["trainer_2"],
    victims=others(4, 2),
)
def mismatch_of_overlapped_works(stage: Stage) -> Any:
    return stage.loop(stage.ranks(OverlapsGradients, 4), "score_batch update_policy")


class ListensToTheWrongSide(PolicyTrainer):
    def update_policy(self, step: int) -> float:
        if step == FATAL_STEP:
            self.seat.arrive()
        for _ in range(3):
            self.exchange_halos(source=self.rank + (1 if step == FATAL_STEP and self.rank == 2 else -1))
        return 0.0

    def exchange_halos(self, source: int) -> None:
        """Receive from one neighbour while sending to the other."""
        world, halo = self.seat.world, torch.zeros(1 << 17)
        received = dist.irecv(halo, src=source % world)
        sent = dist.isend(torch.ones(1 << 17), dst=(self.rank + 1) % world)
        received.wait()
        sent.wait()


@scenario(
    story="Stages pass halos round a ring with isend and irecv; rank 2 listens to the wrong neighbour.",
    cause="p2p-mismatch",
    phase="update",
    culprits=[f"trainer_{rank}" for rank in range(4)],
    victims=["controller", "driver"],
)
def pipeline_irecv_from_wrong_rank(stage: Stage) -> Any:
    return stage.loop(stage.ranks(ListensToTheWrongSide, 4), "update_policy")


class TrainsInParallel(PolicyTrainer):
    def join_world(self) -> None:
        super().join_world()
        self.model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64))
        self.model(torch.rand(4, 64)).sum().backward()

    def update_policy(self, step: int) -> float:
        loss = self.model(torch.rand(4, 64)).sum()
        if step == FATAL_STEP and self.rank == 1:
            self.seat.arrive()
            self.read_reference_weights()
        loss.backward()
        return float(loss)

    def read_reference_weights(self) -> None:
        open_on_hung_mount(self.seat.path("reference.safetensors"))


@scenario(
    story="Rank 1 reads reference weights from a hung mount before its backward pass; the others wait for it inside loss.backward().",
    cause="blocked-io",
    phase="update",
    culprits=["trainer_1"],
    victims=others(3, 1),
)
def backward_waits_for_a_reader(stage: Stage) -> Any:
    return stage.loop(stage.ranks(TrainsInParallel, 3), "update_policy")


class PollsItsTrainer(PolicyTrainer):
    """The actor's method polls a flag while a thread of its own trains."""

    def update_policy(self, step: int) -> float:
        done = threading.Event()
        thread = threading.Thread(target=self.train_in_background, args=(step, done), name="trainer")
        thread.start()
        while not done.is_set():
            time.sleep(0.05)
        thread.join()
        return 0.0

    def train_in_background(self, step: int, done: threading.Event) -> None:
        if step == FATAL_STEP and self.rank == 1:
            self.seat.arrive()
            open_on_hung_mount(self.seat.path("reference.safetensors"))
        dist.all_reduce(torch.rand(64))
        done.set()


@scenario(
    story="Training runs in a thread while the actor's method sleeps and polls; the thread of rank 1 opens a file on a hung mount.",
    cause="blocked-io",
    phase="update",
    culprits=["trainer_1"],
    victims=others(3, 1),
)
def trains_in_a_thread_and_polls(stage: Stage) -> Any:
    return stage.loop(stage.ranks(PollsItsTrainer, 3), "update_policy")
