"""Twelve processes of which each knows for whom it waits: ``chain_program.py FOLDER``. Announces the truth when all wait, then ends with its input.

driver → runner → trainer 0 to 3; trainers 0, 1 and 3 → trainer 2 (all_reduce) → reward manager → scorer → tool server (socket), which opens a
FIFO that nobody writes; critic → reward manager (its call is queued); two rollout servers have nothing to do.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

import ray
import torch
import torch.distributed as dist

TRAINERS = 4
EDGES = (
    ("driver", "runner"),
    *(("runner", f"trainer_{r}") for r in range(TRAINERS)),
    *((f"trainer_{r}", "trainer_2") for r in (0, 1, 3)),
    ("trainer_2", "reward_manager"),
    ("critic", "reward_manager"),
    ("runner", "critic"),
    ("reward_manager", "scorer"),
    ("scorer", "tool_server"),
)
CAUSE = "tool_server"


class Member:
    """Somebody who notes down his pid, and that he is about to wait."""

    def __init__(self, folder: str, name: str) -> None:
        self.folder, self.name = Path(folder), name
        self.note("pid", str(os.getpid()))

    def note(self, what: str, text: str = "") -> None:
        part = self.folder / f"{self.name}.{what}.part"
        part.write_text(text)
        part.rename(self.folder / f"{self.name}.{what}")

    def ping(self) -> int:
        return os.getpid()


class ToolServer(Member):
    """Answers on a socket of its own, once the FIFO has told it what."""

    def listen(self) -> int:
        self.server = socket.create_server(("127.0.0.1", 0))
        return int(self.server.getsockname()[1])

    def serve(self) -> bytes:
        connection, _ = self.server.accept()
        question = connection.recv(100)
        self.note("waits")
        with (self.folder / "answers").open("rb") as answers:
            connection.sendall(answers.read())
        return question


class Scorer(Member):
    def score(self, port: int) -> bytes:
        with socket.create_connection(("127.0.0.1", port)) as tool:
            tool.sendall(b"6 * 7")
            self.note("waits")
            return tool.recv(100)


class RewardManager(Member):
    def compute_reward(self, scorer: Any, port: int) -> int:
        answer = scorer.score.remote(port)
        self.note("waits")
        return int(ray.get(answer))


class Critic(Member):
    def compute_values(self, manager: Any, scorer: Any, port: int) -> int:
        value = manager.compute_reward.remote(scorer, port)
        self.note("waits")
        return int(ray.get(value))


class Trainer(Member):
    def __init__(self, folder: str, name: str, rank: int) -> None:
        super().__init__(folder, name)
        self.rank = rank
        os.environ.update(RANK=str(rank), WORLD_SIZE=str(TRAINERS), GLOO_SOCKET_IFNAME="lo")

    def init_model(self) -> None:
        dist.init_process_group("gloo", init_method=f"file://{self.folder}/store", rank=self.rank, world_size=TRAINERS)
        dist.all_reduce(torch.ones(1))

    def update_policy(self, manager: Any, scorer: Any, port: int) -> float:
        reward = 0
        if self.rank == 2:
            answer = manager.compute_reward.remote(scorer, port)
            self.note("waits")
            reward = ray.get(answer)
        self.note("waits")
        gradient = torch.full((8,), float(reward))
        dist.all_reduce(gradient)
        return float(gradient.sum())


class Runner(Member):
    def fit(self, trainers: list[Any], critic: Any, manager: Any, scorer: Any, port: int) -> list[float]:
        steps = [one.update_policy.remote(manager, scorer, port) for one in trainers]
        while not (self.folder / "trainer_2.waits").exists():  # the critic's call comes behind the trainer's
            time.sleep(0.05)
        steps.append(critic.compute_values.remote(manager, scorer, port))
        self.note("waits")
        return list(ray.get(steps))


def main() -> None:
    folder = sys.argv[1]
    os.mkfifo(f"{folder}/answers")
    ray.init(address="local", num_cpus=2, include_dashboard=False, _temp_dir=f"{folder}/ray", log_to_driver=False, object_store_memory=100 << 20)

    def start(kind: type, name: str, *more: object) -> Any:
        return ray.remote(kind).options(name=name, num_cpus=0).remote(folder, name, *more)

    tool, scorer, manager, critic = (
        start(kind, name) for kind, name in ((ToolServer, "tool_server"), (Scorer, "scorer"), (RewardManager, "reward_manager"), (Critic, "critic"))
    )
    idle = [start(Member, f"rollout_server_{i}") for i in range(2)]
    trainers = [start(Trainer, f"trainer_{r}", r) for r in range(TRAINERS)]
    ray.get([one.init_model.remote() for one in trainers])
    ray.get([one.ping.remote() for one in (scorer, manager, critic, *idle)])
    port = ray.get(tool.listen.remote())
    tool.serve.remote()
    running = start(Runner, "runner").fit.remote(trainers, critic, manager, scorer, port)
    Member(folder, "driver")
    threading.Thread(target=_announce, args=(Path(folder),), daemon=True).start()
    ray.get(running)


def _announce(folder: Path) -> None:
    waiting = {name for edge in EDGES for name in edge} - {"driver"}
    while not all((folder / f"{name}.waits").exists() for name in waiting):
        time.sleep(0.05)
    pids = {path.name[:-4]: int(path.read_text()) for path in folder.glob("*.pid")}
    address = ray.get_runtime_context().gcs_address
    print(json.dumps({"address": address, "pids": pids, "edges": EDGES, "cause": CAUSE}), flush=True)
    while os.read(0, 1024):
        pass
    threading.Timer(10.0, os._exit, (0,)).start()
    ray.shutdown()
    os._exit(0)


if __name__ == "__main__":
    main()
