"""Programs behind the cases that no program of ``examples/`` shows: ``python tests/cases/programs.py engine_left_paused``.

Each starts a small Ray of its own, hangs in one known way, prints its GCS address and its pid, and stays until stdin closes.
Then: ``rayrl-debug snapshot --address ADDRESS -o DIR``, and ``store.py``.
"""

from __future__ import annotations

import asyncio
import dataclasses
import glob
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable

import ray

NODES = {"num_cpus": 4, "include_dashboard": False, "log_to_driver": False}


@dataclasses.dataclass
class Waits:
    """The driver waits for these."""

    refs: list[object]
    kept: object = None


@dataclasses.dataclass
class Stops:
    """What must be let go at the end."""

    stopped: tuple[int, ...]
    children: tuple[subprocess.Popen[bytes], ...]


@ray.remote
class RolloutEngine:
    """An engine behind a pause gate."""

    def __init__(self) -> None:
        self.resumed = asyncio.Event()
        self.resumed.set()

    async def pause_generation(self) -> None:
        self.resumed.clear()

    async def wait_for_resume(self) -> None:
        await self.resumed.wait()

    async def generate(self, prompt: str) -> str:
        await self.wait_for_resume()
        return prompt


def engine_left_paused() -> object:
    """A weight update pauses the engine, fails, and nobody resumes it."""
    ray.init(**NODES)
    engine = RolloutEngine.options(name="rollout_engine_0").remote()
    ray.get(engine.pause_generation.remote())
    return Waits(refs=[engine.generate.remote(f"prompt {i}") for i in range(8)], kept=engine)


@ray.remote
class PolicyTrainer:
    """A rank that never gets a batch."""

    def init_model(self) -> None:
        return None

    def update_actor(self) -> None:
        return None


@ray.remote
class TaskRunner:
    """Drives the training over an empty data set."""

    def run(self, trainers: list[object]) -> str:
        ray.get([t.init_model.remote() for t in trainers])  # type: ignore[attr-defined]
        batches: list[object] = []
        for _ in batches:
            ray.get([t.update_actor.remote() for t in trainers])  # type: ignore[attr-defined]
        return "training finished"


def no_batch_no_step() -> object:
    """The loader yields nothing, so the loop ends at once, and well."""
    ray.init(**NODES)
    trainers = []
    for rank in range(2):
        env = {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29511"}
        trainers.append(PolicyTrainer.options(name=f"policy_trainer_{rank}", runtime_env={"env_vars": env}).remote())
    runner = TaskRunner.options(name="task_runner").remote()
    ray.get(runner.run.remote(trainers))
    time.sleep(2.0)
    return trainers, runner


@ray.remote
def make_batch(megabytes: int) -> bytes:
    return os.urandom(megabytes << 20)


def restore_reads_for_ever() -> object:
    """Spilled batches lie on a mount that no longer answers: a FIFO nobody writes to stands for it."""
    folder = tempfile.mkdtemp(prefix="spill-")
    ray.init(**NODES, object_store_memory=80 << 20, object_spilling_directory=folder)
    batches = [make_batch.remote(20) for _ in range(8)]
    ray.wait(batches, num_returns=len(batches), fetch_local=False)
    time.sleep(2.0)
    spilled = [f for f in glob.glob(f"{folder}/**/*", recursive=True) if os.path.isfile(f)]
    for path in spilled:
        os.remove(path)
        os.mkfifo(path)
    return Waits(refs=batches)


def raylet_does_not_answer() -> object:
    """A second job knocks at a raylet that hangs."""
    ray.init(**NODES)
    raylet = next(int(p) for p in os.listdir("/proc") if p.isdigit() and _is_my_raylet(int(p)))
    os.kill(raylet, signal.SIGSTOP)
    address = ray.get_runtime_context().gcs_address
    second = subprocess.Popen([sys.executable, "-c", f"import ray; ray.init(address={address!r}, log_to_driver=False)"])
    return Stops(stopped=(raylet,), children=(second,))


@ray.remote
class MeetsOnTakenPort:
    """A rank that cannot open its store, says so in its log, and tries for ever."""

    def join_world(self, port: int) -> None:
        from torch.distributed import TCPStore

        while True:
            try:
                TCPStore("127.0.0.1", port, 2, True)
            except RuntimeError:
                traceback.print_exc()
            time.sleep(30.0)


def rendezvous_port_taken() -> object:
    """An older run still listens where the ranks want to meet."""
    ray.init(**NODES)
    older = socket.create_server(("0.0.0.0", 0))
    rank = MeetsOnTakenPort.options(name="policy_trainer_0").remote()
    ref = rank.join_world.remote(older.getsockname()[1])
    time.sleep(10.0)
    return Waits(refs=[ref], kept=(older, rank))


@ray.remote
class RewardService:
    """Scores over connections of its own, beside Ray's calls, and keeps those of clients that have gone."""

    def listen(self, more: int) -> tuple[int, int, int]:
        """Its port, its pid, and its limit, which is `more` above what it has open."""
        limit = max(map(int, os.listdir("/proc/self/fd"))) + more
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        self.listening = socket.create_server(("127.0.0.1", 0), backlog=64)
        threading.Thread(target=self.serve, daemon=True).start()
        return self.listening.getsockname()[1], os.getpid(), limit

    def serve(self) -> None:
        kept = []
        while True:
            try:
                connection, _ = self.listening.accept()
            except OSError:
                time.sleep(0.5)
                continue
            connection.sendall(connection.recv(64))
            kept.append(connection)


@ray.remote
class AsksForRewards:
    """A trainer with a connection for each request."""

    def update_actor(self, port: int) -> None:
        while True:
            with socket.create_connection(("127.0.0.1", port)) as connection:
                connection.sendall(b"answer")
                connection.recv(64)


def reward_actor_keeps_connections() -> object:
    """An actor that serves rewards closes nothing until it can accept nobody."""
    ray.init(**NODES)
    service, trainer = RewardService.options(name="reward_service").remote(), AsksForRewards.options(name="policy_trainer").remote()
    port, pid, limit = ray.get(service.listen.remote(100))
    update = trainer.update_actor.remote(port)
    while len(os.listdir(f"/proc/{pid}/fd")) < limit:
        time.sleep(0.2)
    time.sleep(3.0)
    return Waits(refs=[update], kept=service)


def _is_my_raylet(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/comm") as name, open(f"/proc/{pid}/stat") as stat:
            return name.read().strip() == "raylet" and int(stat.read().rsplit(")", 1)[1].split()[1]) == os.getpid()
    except OSError:
        return False


PROGRAMS: tuple[Callable[[], object], ...] = (
    engine_left_paused,
    no_batch_no_step,
    restore_reads_for_ever,
    rendezvous_port_taken,
    raylet_does_not_answer,
    reward_actor_keeps_connections,
)


def main() -> None:
    program = next(p for p in PROGRAMS if p.__name__ == sys.argv[1])
    kept = program()
    print(ray.get_runtime_context().gcs_address, os.getpid(), flush=True)
    threading.Thread(target=_end_with_stdin, args=(kept,), daemon=True).start()
    if isinstance(kept, Waits):
        ray.get(kept.refs)
    threading.Event().wait()


def _end_with_stdin(kept: object) -> None:
    sys.stdin.read()
    for process in getattr(kept, "stopped", ()):
        os.kill(process, signal.SIGCONT)
    for child in getattr(kept, "children", ()):
        child.kill()
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
