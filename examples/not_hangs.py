"""Runs in which nobody may be accused: they move, or they have nothing to do."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import Any

from kit import Seat, Stage, scenario
from ranks import PolicyTrainer

ALIVE = "healthy|slow|unknown"
"""*Unknown* is honest where the window is too short to tell; nobody may be accused all the same."""


class Brisk(PolicyTrainer):
    def update_policy(self, step: int) -> float:
        if step == 5 and self.rank == 0:
            self.seat.arrive()
        return super().update_policy(step)


@scenario(
    story="Four ranks train many steps a second.",
    state="healthy",
    cause=None,
    phase="unknown",
    ready=["trainer_0"],
    nodes=2,
)
def trains_briskly(stage: Stage) -> Any:
    return stage.loop(stage.ranks(Brisk, 4), "rollout_batch score_batch update_policy")


class OneSlow(PolicyTrainer):
    def score_batch(self, step: int) -> float:
        if self.rank == 3:
            self.judge_slowly()
        return super().score_batch(step)

    def judge_slowly(self) -> None:
        self.seat.arrive()
        time.sleep(1.5)


@scenario(
    story="Rank 3 takes 1.5 s for every batch; the others wait for it, and the steps go on.",
    state=ALIVE,
    cause=None,
    phase="reward",
    ready=["trainer_3"],
)
def one_rank_is_slow(stage: Stage) -> Any:
    return stage.loop(stage.ranks(OneSlow, 4), "score_batch update_policy")


class Generator:
    """One long generation: token after token, computed in Python."""

    def __init__(self, seat: Seat) -> None:
        self.seat = seat
        seat.sit()

    def generate_sequences(self, tokens: int) -> int:
        state = 1
        for number in range(tokens):
            if number == 10:
                self.seat.arrive()
            state = self.decode_token(state)
        return state

    def decode_token(self, state: int) -> int:
        for _ in range(20_000):
            state = (state * 48271) % 2147483647
        return state


@scenario(
    story="One server generates a very long answer; the driver waits for it.",
    state=ALIVE,
    cause=None,
    phase="rollout",
    ready=["generator"],
)
def long_generation(stage: Stage) -> Any:
    return stage.actor(Generator, "generator", name="rollout_server_0").generate_sequences.remote(10**9)


class WritesLong(PolicyTrainer):
    def save_shards(self, step: int) -> None:
        if self.rank == 0:
            self.write_big_checkpoint()
        super().save_shards(step)

    def write_big_checkpoint(self) -> None:
        with open(self.seat.path("checkpoint.bin"), "wb") as f:
            for chunk in range(100_000):
                f.seek(0)
                f.write(os.urandom(1 << 18))
                os.fsync(f.fileno())
                if chunk == 3:
                    self.seat.arrive()


@scenario(
    story="Rank 0 writes a big checkpoint; the others wait in the barrier.",
    state=ALIVE,
    cause=None,
    phase="checkpoint",
    ready=["trainer_0"],
)
def long_checkpoint(stage: Stage) -> Any:
    return stage.loop(stage.ranks(WritesLong, 3), "update_policy save_shards")


@scenario(
    story="Three steps are done, the actors are idle, the notebook waits for its user.",
    state="healthy|finished",
    cause=None,
    phase="idle",
    ready=["driver"],
)
def idle_notebook(stage: Stage) -> Any:
    import ray

    ray.get(stage.loop(stage.ranks(PolicyTrainer, 2, rank_by="late"), "score_batch update_policy", steps=3))
    stage.seat("driver").arrive()
    return None


class CompilesFirst(PolicyTrainer):
    def update_policy(self, step: int) -> float:
        if step == 1 and self.rank == 1:
            self.compile_graph()
        return super().update_policy(step)

    def compile_graph(self) -> None:
        """A compiler in a child process that works for minutes."""
        work = "n = 1\nwhile True:\n    n = n * 48271 % 2147483647\n"
        compiler = subprocess.Popen([sys.executable, "-c", work])
        self.seat.arrive()
        compiler.wait()


@scenario(
    story="Rank 1 compiles in the first step, in a child process that is at work; the others wait.",
    state=ALIVE,
    cause=None,
    phase="update",
    ready=["trainer_1"],
)
def first_step_compiles(stage: Stage) -> Any:
    return stage.loop(stage.ranks(CompilesFirst, 3), "update_policy")


class StoppedViewer:
    """Shows samples to a person, who has set a breakpoint there."""

    def __init__(self, seat: Seat) -> None:
        self.seat = seat
        seat.sit()

    def show_samples(self) -> None:
        from ray.util import pdb

        os.environ["RAY_DEBUG"] = "legacy"  # Ray's other debugger needs debugpy
        self.seat.arrive()
        pdb.set_trace()


@scenario(
    story="A person looks at samples in a debugger, in an actor for which nobody waits; three ranks train on.",
    state=ALIVE,
    cause=None,
    phase="unknown",
    ready=["viewer"],
)
def viewer_at_a_breakpoint(stage: Stage) -> Any:
    stage.actor(StoppedViewer, "viewer", name="viewer").show_samples.remote()
    return stage.loop(stage.ranks(PolicyTrainer, 3), "rollout_batch score_batch update_policy")
