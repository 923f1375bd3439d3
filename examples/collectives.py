"""Hangs at collectives: somebody is late, elsewhere, gone, stopped or deaf."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
import torch.distributed as dist
from kit import Stage, TrainingLoop, scenario
from ranks import FATAL_STEP, PolicyTrainer, others


class EndlessNormaliser(PolicyTrainer):
    def score_batch(self, step: int) -> float:
        if step == FATAL_STEP and self.rank == 1:
            self.seat.arrive()
            self.normalise_answer("((x))")
        return super().score_batch(step)

    def normalise_answer(self, text: str) -> str:
        """Strip brackets until none is left; the pattern removes none of these."""
        while "(" in text:
            text = text.replace("()", "")
        return text


@scenario(
    story="Rank 1 strips brackets from an answer for ever; the others wait in the all_reduce of the rewards.",
    cause="straggler",
    phase="reward",
    culprits=["trainer_1"],
    victims=others(4, 1),
    nodes=2,
)
def straggler_endless_normaliser(stage: Stage) -> Any:
    return stage.loop(stage.ranks(EndlessNormaliser, 4, rank_by="late"), "rollout_batch score_batch update_policy")


class RankZeroBarrier(PolicyTrainer):
    def update_policy(self, step: int) -> float:
        if step == FATAL_STEP and self.rank == 0:
            self.seat.arrive()
            self.log_on_main_rank()
        return super().update_policy(step)

    def log_on_main_rank(self) -> None:
        dist.barrier()


@scenario(
    story="Only rank 0 enters a barrier before it logs; the others are in the all_reduce of the gradients.",
    cause="collective-mismatch",
    phase="update",
    culprits=["trainer_0"],
    victims=others(4, 0),
    nodes=2,
)
def mismatch_barrier_on_rank_zero(stage: Stage) -> Any:
    return stage.loop(stage.ranks(RankZeroBarrier, 4, rank_by="runtime_env"), "rollout_batch update_policy")


class SkipsEmptyMicroBatch(PolicyTrainer):
    def update_policy(self, step: int) -> float:
        if step == FATAL_STEP and self.rank == 2:
            self.seat.arrive()
            return self.gather_metrics()
        return super().update_policy(step)


@scenario(
    story="Rank 2 has an empty micro-batch, skips the gradient all_reduce and waits in the all_gather of the metrics.",
    cause="collective-mismatch",
    phase="update",
    culprits=["trainer_2"],
    victims=others(4, 2),
)
def mismatch_skipped_all_reduce(stage: Stage) -> Any:
    return stage.loop(stage.ranks(SkipsEmptyMicroBatch, 4), "score_batch update_policy")


class ReturnsEarly(PolicyTrainer):
    def update_policy(self, step: int) -> float:
        if step == FATAL_STEP and self.rank == 3:
            self.seat.arrive()
            return 0.0
        return super().update_policy(step)


@scenario(
    story="Rank 3 finds its data shard empty and returns from update_policy; it is idle while the others wait in the all_reduce.",
    cause="collective-mismatch",
    phase="update",
    culprits=["trainer_3"],
    victims=others(4, 3),
    nodes=2,
)
def mismatch_early_return(stage: Stage) -> Any:
    return stage.loop(stage.ranks(ReturnsEarly, 4), "score_batch update_policy")


class PipelineStage(PolicyTrainer):
    def update_policy(self, step: int) -> float:
        if step == FATAL_STEP:
            self.seat.arrive()
            self.exchange_activations()
        return super().update_policy(step)

    def exchange_activations(self) -> None:
        """A ring in which every stage receives before it sends."""
        world = self.seat.world
        dist.recv(torch.zeros(16), src=(self.rank - 1) % world)
        dist.send(torch.ones(16), dst=(self.rank + 1) % world)


@scenario(
    story="Three pipeline stages form a ring, and each receives from the one before it before it sends.",
    cause="p2p-mismatch",
    phase="update",
    culprits=["trainer_0", "trainer_1", "trainer_2"],
    victims=["controller", "driver"],
)
def pipeline_receive_ring(stage: Stage) -> Any:
    return stage.loop(stage.ranks(PipelineStage, 3), "update_policy")


class WaitsForDownload(PolicyTrainer):
    def join_world(self) -> None:
        if self.rank == 2:
            self.seat.arrive()
            self.wait_for_download()
        super().join_world()

    def wait_for_download(self) -> None:
        """Wait for the marker that another rank's download should have left."""
        while not os.path.exists(self.seat.path("model.downloaded")):
            time.sleep(0.2)


@scenario(
    story="Rank 2 waits for a download marker that nobody writes, before the rendezvous; the others are in init_process_group.",
    state="hang|unknown",  # a poll of seconds, before any call has ended, can also be a slow start
    cause="init-deadlock",
    phase="init",
    culprits=["trainer_2"],
    victims=others(3, 2),
    nodes=2,
    settle_s=3.0,
)
def init_one_rank_waits_outside(stage: Stage) -> Any:
    return stage.loop(stage.ranks(WaitsForDownload, 3), "update_policy")


class CountsOneMore(PolicyTrainer):
    def join_world(self) -> None:
        self.seat.arrive()
        super().join_world()


@scenario(
    story="WORLD_SIZE says four, three ranks were started: the rendezvous waits for rank 3, which does not exist.",
    cause="init-deadlock",
    phase="init",
    culprits=["label:3"],
    victims=others(3),
    ready=["trainer_0", "trainer_1", "trainer_2"],
    settle_s=3.0,
)
def init_rank_never_started(stage: Stage) -> Any:
    return stage.loop(stage.ranks(CountsOneMore, 3, rank_by="runtime_env", size=4), "update_policy")


class KilledWhileLoading(PolicyTrainer):
    def join_world(self) -> None:
        if self.rank == 1:
            self.seat.arrive()
            os.kill(os.getpid(), signal.SIGKILL)  # what the kernel does when memory is out
        super().join_world()


@scenario(
    story="Rank 1 is killed while it loads the model; the controller waits for all ranks, they wait for rank 1 in the rendezvous.",
    cause="rank-died",
    phase="init",
    culprits=["trainer_1", "label:policy_trainer_1", "label:/1"],
    victims=others(4, 1),
    ready=["trainer_1"],
    nodes=2,
    settle_s=4.0,
)
def rank_killed_while_loading(stage: Stage) -> Any:
    trainers = stage.ranks(KilledWhileLoading, 4)
    return stage.actor(TrainingLoop, "controller").launch.remote(trainers)


class UploadsAtTheEnd(PolicyTrainer):
    def shutdown(self, step: int) -> None:
        if self.rank == 2:
            self.close_uploader()
        super().shutdown(step)

    def close_uploader(self) -> None:
        """Wait for the pool, whose last upload waits for a confirmation that is not sent any more."""
        confirmed = threading.Event()
        pool = ThreadPoolExecutor(1, thread_name_prefix="uploader")
        pool.submit(self.upload_last_shard, confirmed)
        self.seat.arrive()
        pool.shutdown(wait=True)

    def upload_last_shard(self, confirmed: threading.Event) -> None:
        confirmed.wait()


@scenario(
    story="At shutdown rank 2 waits for its upload pool, which waits for an event; the others are in the last barrier.",
    cause="cleanup-deadlock",
    phase="cleanup",
    culprits=["trainer_2"],
    victims=others(3, 2),
)
def cleanup_pool_never_empty(stage: Stage) -> Any:
    return stage.loop(stage.ranks(UploadsAtTheEnd, 3, rank_by="late"), "update_policy shutdown")


class StoppedFromOutside(PolicyTrainer):
    def score_batch(self, step: int) -> float:
        if step == FATAL_STEP and self.rank == 3:
            self.seat.arrive()
        time.sleep(0.05)
        return super().score_batch(step)


@scenario(
    story="An operator stopped rank 3 (SIGSTOP) and forgot it; the others wait in collectives.",
    cause="process-stopped",
    phase="reward",
    culprits=["trainer_3"],
    victims=others(4, 3),
    nodes=2,
    settle_s=2.5,
)
def rank_stopped_by_operator(stage: Stage) -> Any:
    trainers = stage.ranks(StoppedFromOutside, 4)
    working = stage.loop(trainers, "score_batch update_policy")

    def stop() -> None:
        while not os.path.exists(os.path.join(stage.folder, "trainer_3.there")):
            time.sleep(0.02)
        with open(os.path.join(stage.folder, "trainer_3.pid")) as f:
            os.kill(int(f.read()), signal.SIGSTOP)

    threading.Thread(target=stop, name="operator", daemon=True).start()
    return working


class SyncedTrainer(PolicyTrainer):
    """Two trainers and two inference shards share one group for weights."""

    def push_weights(self, step: int) -> None:
        self.seat.arrive()
        super().push_weights(step)


class InferenceShard(PolicyTrainer):
    def receive_weights(self, step: int) -> None:
        self.seat.arrive()
        dist.broadcast(self.weights, src=0)
        dist.barrier()


class ForgetsLastShard(TrainingLoop):
    def run_weight_sync(self, trainers: list[Any], shards: list[Any]) -> None:
        import ray

        ray.get([t.setup_distributed.remote() for t in (*trainers, *shards)])
        calls = [t.push_weights.remote(1) for t in trainers]
        calls += [s.receive_weights.remote(1) for s in shards[:-1]]
        ray.get(calls)


@scenario(
    story="The controller asks both trainers and the first inference shard for the weight update, and forgets the last shard.",
    cause="weight-sync-mismatch",
    phase="weight_sync",
    culprits=["shard_1"],
    victims=["trainer_0", "trainer_1", "shard_0", "controller", "driver"],
    ready=["trainer_0", "trainer_1", "shard_0"],
    nodes=2,
)
def weight_sync_forgotten_shard(stage: Stage) -> Any:
    trainers = stage.ranks(SyncedTrainer, 2, size=4)
    shards = []
    for i in range(2):
        seat = stage.seat(f"shard_{i}", rank=2 + i, world=4, rank_by="late")
        shards.append(stage.actor(InferenceShard, seat.name, seat=seat, name=f"inference_shard_{i}"))
    return stage.actor(ForgetsLastShard, "controller").run_weight_sync.remote(trainers, shards)


class DeafRank(PolicyTrainer):
    def join_world(self) -> None:
        before = set(os.listdir("/proc/self/fd"))
        super().join_world()
        self.opened = [int(fd) for fd in os.listdir("/proc/self/fd") if fd not in before]

    def update_policy(self, step: int) -> float:
        if step == FATAL_STEP and self.rank == 1:
            self.drop_everything_received()
            self.seat.arrive()
        return super().update_policy(step)

    def drop_everything_received(self) -> None:
        """A socket filter that drops every packet, as a broken switch does."""

        class Instruction(ctypes.Structure):
            _fields_ = (("code", ctypes.c_uint16), ("jt", ctypes.c_uint8), ("jf", ctypes.c_uint8), ("k", ctypes.c_uint32))

        class Program(ctypes.Structure):
            _fields_ = (("length", ctypes.c_uint16), ("first", ctypes.POINTER(Instruction)))

        nothing = Instruction(6, 0, 0, 0)  # BPF_RET: keep 0 bytes
        program = Program(1, ctypes.pointer(nothing))
        for fd in self.opened:
            try:
                peer = socket.socket(fileno=os.dup(fd))
                if peer.family == socket.AF_INET and self.seat.port not in (peer.getpeername()[1], peer.getsockname()[1]):
                    peer.setsockopt(socket.SOL_SOCKET, 26, bytes(program))  # SO_ATTACH_FILTER
                peer.close()
            except OSError:
                continue  # not a connected socket


@scenario(
    story="All ranks are in the same all_reduce; the network drops every packet for rank 1.",
    cause="collective-stalled",
    phase="update",
    culprits=[],
    victims=[*others(4), "trainer_1"],
    ready=["trainer_1"],
    nodes=2,
    settle_s=4.0,
)
def network_drops_packets(stage: Stage) -> Any:
    return stage.loop(stage.ranks(DeafRank, 4), "score_batch update_policy")
