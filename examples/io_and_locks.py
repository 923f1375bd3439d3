"""Hangs in files, child processes, locks and native code, while the peers wait in collectives or for the actor."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import multiprocessing
import os
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import torch
from kit import Seat, Stage, scenario
from ranks import FATAL_STEP, PolicyTrainer, others
from torch.utils.data import DataLoader, Dataset


class ReadsPrompts(PolicyTrainer):
    def rollout_batch(self, step: int) -> None:
        if step == FATAL_STEP and self.rank == 1:
            os.mkfifo(self.seat.path("prompts.parquet"))
            self.seat.arrive()
            self.load_prompts(self.seat.path("prompts.parquet"))
        super().rollout_batch(step)

    def load_prompts(self, path: str) -> bytes:
        return Path(path).read_bytes()


@scenario(
    story="Rank 1 opens the prompt file on a mount that does not answer (here a FIFO without writer); the others wait in all_gather.",
    cause="blocked-io",
    phase="data",
    culprits=["trainer_1"],
    victims=others(4, 1),
    nodes=2,
)
def prompts_on_hung_mount(stage: Stage) -> Any:
    return stage.loop(stage.ranks(ReadsPrompts, 4, rank_by="late"), "rollout_batch update_policy")


class LocksCache(PolicyTrainer):
    def save_shards(self, step: int) -> None:
        if step == FATAL_STEP and self.rank == 0:
            self.refresh_cache()
        super().save_shards(step)

    def refresh_cache(self) -> None:
        with open(self.seat.path("cache.lock"), "w") as lock:
            self.seat.arrive()
            fcntl.flock(lock, fcntl.LOCK_EX)


class CacheWarmer:
    """Took the lock of the cache and never gave it back."""

    def __init__(self, seat: Seat) -> None:
        self.lock = open(seat.path("cache.lock"), "w")  # noqa: SIM115
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        seat.sit()

    def warm(self) -> bool:
        return True


@scenario(
    story="Rank 0 waits for the lock of the shared cache, which another actor holds and forgot.",
    cause="blocked-io",
    phase="checkpoint",
    culprits=["trainer_0", "cache_warmer"],
    victims=others(3, 0),
    ready=["trainer_0"],
)
def cache_lock_never_released(stage: Stage) -> Any:
    import ray

    ray.get(stage.actor(CacheWarmer, "cache_warmer").warm.remote())
    return stage.loop(stage.ranks(LocksCache, 3), "update_policy save_shards")


class CallsCompiler(PolicyTrainer):
    def score_batch(self, step: int) -> float:
        if step == FATAL_STEP and self.rank == 2:
            self.run_unit_tests()
        return super().score_batch(step)

    def run_unit_tests(self) -> int:
        """Run the generated program, which never ends. Some seconds are nothing unusual for one."""
        program = subprocess.Popen(["sleep", "86400"])
        Path(self.seat.path("unit_tests.pid")).write_text(str(program.pid))
        with contextlib.suppress(subprocess.TimeoutExpired):
            return program.wait(timeout=4)
        self.seat.arrive()
        return program.wait()


@scenario(
    story="Rank 2 waits for a generated program that never ends; the others wait in the all_reduce of the rewards.",
    cause="blocked-io",
    phase="reward",
    culprits=["trainer_2", "unit_tests"],
    victims=others(3, 2),
    ready=["trainer_2"],
)
def generated_program_never_ends(stage: Stage) -> Any:
    return stage.loop(stage.ranks(CallsCompiler, 3, rank_by="runtime_env"), "score_batch update_policy")


class LeavesBreakpoint(PolicyTrainer):
    def score_batch(self, step: int) -> float:
        if step == FATAL_STEP and self.rank == 1:
            self.compare_rewards()
        return super().score_batch(step)

    def compare_rewards(self) -> None:
        from ray.util import pdb

        os.environ["RAY_DEBUG"] = "legacy"  # Ray's other debugger needs debugpy
        self.seat.arrive()
        pdb.set_trace()


@scenario(
    story="Somebody left a breakpoint in the reward code of rank 1; Ray's debugger waits there for a person, the others in all_reduce.",
    cause="blocked-io",
    phase="reward",
    culprits=["trainer_1"],
    victims=others(3, 1),
    ready=["trainer_1"],
)
def breakpoint_left_in_reward(stage: Stage) -> Any:
    return stage.loop(stage.ranks(LeavesBreakpoint, 3), "score_batch update_policy")


class TwoLockScorer:
    """Scores and reports under two locks that are taken in opposite order."""

    def __init__(self, seat: Seat) -> None:
        self.seat = seat
        self.cache_lock, self.stats_lock = threading.Lock(), threading.Lock()
        self.both = threading.Barrier(2)
        seat.sit()

    def score_answers(self) -> float:
        threading.Thread(target=self.report_stats, name="stats-reporter", daemon=True).start()
        with self.cache_lock:
            self.both.wait()
            self.seat.arrive()
            self.count_hit()
        return 1.0

    def count_hit(self) -> None:
        with self.stats_lock:
            pass

    def report_stats(self) -> None:
        with self.stats_lock:
            self.both.wait()
            self.read_cache_size()

    def read_cache_size(self) -> None:
        with self.cache_lock:
            pass


@scenario(
    story="In the scorer the main thread and the reporter thread take two locks in opposite order.",
    cause="lock-deadlock",
    phase="reward",
    culprits=["scorer"],
    victims=["driver"],
)
def locks_in_opposite_order(stage: Stage) -> Any:
    return stage.actor(TwoLockScorer, "scorer", name="reward_scorer_0").score_answers.remote()


vocabulary_lock = threading.Lock()


class ForkingScorer:
    """Forks a child while another thread holds the lock of the vocabulary."""

    def __init__(self, seat: Seat) -> None:
        self.seat = seat
        seat.sit()

    def score_in_child(self) -> None:
        held = threading.Event()
        threading.Thread(target=self.load_vocabulary, args=(held,), daemon=True).start()
        held.wait()
        child = multiprocessing.get_context("fork").Process(target=self.encode_answers)
        child.start()
        child.join()

    def load_vocabulary(self, held: threading.Event) -> None:
        with vocabulary_lock:
            held.set()
            time.sleep(1.0)

    def encode_answers(self) -> None:
        child = self.seat.child("scorer_child")
        child.sit()
        child.arrive()
        with vocabulary_lock:
            pass


@scenario(
    story="The scorer forked while another thread held a lock: in the child nobody will ever release it.",
    cause="lock-deadlock",
    phase="reward",
    culprits=["scorer", "scorer_child"],
    victims=["driver"],
    ready=["scorer_child"],
    settle_s=2.0,
)
def lock_inherited_by_fork(stage: Stage) -> Any:
    return stage.actor(ForkingScorer, "scorer").score_in_child.remote()


class PromptShards(Dataset):  # type: ignore[type-arg]
    """Sixteen prompts; the seventh lies in a shard that does not answer."""

    def __init__(self, seat: Seat) -> None:
        self.seat = seat

    def __len__(self) -> int:
        return 16

    def __getitem__(self, number: int) -> torch.Tensor:
        if number == 6:
            self.read_shard()
        return torch.full((4,), float(number))

    def read_shard(self) -> bytes:
        child = self.seat.child("loader")
        child.sit()
        silent, _ = os.pipe()
        child.arrive()
        return os.read(silent, 1)


class LoadsPrompts(PolicyTrainer):
    def rollout_batch(self, step: int) -> None:
        if step == FATAL_STEP and self.rank == 0:
            for _ in DataLoader(PromptShards(self.seat), batch_size=2, num_workers=1, multiprocessing_context="fork"):
                pass
        super().rollout_batch(step)


@scenario(
    story="Rank 0's DataLoader child reads a shard that never comes; rank 0 waits for the child, the others in all_gather.",
    cause="dataloader-stuck",
    phase="data",
    culprits=["trainer_0", "loader"],
    victims=others(3, 0),
    ready=["loader"],
)
def loader_child_reads_for_ever(stage: Stage) -> Any:
    return stage.loop(stage.ranks(LoadsPrompts, 3), "rollout_batch update_policy")


class HoldsGil(PolicyTrainer):
    def score_batch(self, step: int) -> float:
        if step == FATAL_STEP and self.rank == 1:
            threading.Thread(target=self.warm_up_tokenizer, name="tokenizer-warmup", daemon=True).start()
            time.sleep(0.2)
        return super().score_batch(step)

    def warm_up_tokenizer(self) -> None:
        """A native call that keeps the interpreter lock, as a badly written extension does."""
        self.seat.arrive()
        ctypes.PyDLL(None).sleep(86400)


@scenario(
    story="A side thread of rank 1 is in a native call that holds the GIL; its main thread cannot go on, the others wait in all_reduce.",
    cause="gil-held",
    phase="reward",
    culprits=["trainer_1"],
    victims=others(4, 1),
    nodes=2,
)
def native_call_holds_gil(stage: Stage) -> Any:
    return stage.loop(stage.ranks(HoldsGil, 4), "score_batch update_policy")
