"""Ranks that train for real on gloo: what the quiet programs are made of."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist


class Trainer:
    """One rank of a data-parallel group; every method is one phase of a step."""

    def __init__(self, folder: str, rank: int, world: int) -> None:
        self.folder, self.rank, self.world = Path(folder), rank, world
        os.environ.update(RANK=str(rank), WORLD_SIZE=str(world), GLOO_SOCKET_IFNAME="lo")
        self.model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)

    def init_model(self) -> int:
        dist.init_process_group("gloo", init_method=f"file://{self.folder}/store", rank=self.rank, world_size=self.world)
        dist.all_reduce(torch.ones(1))
        return os.getpid()

    def update_actor(self, micro_batches: int = 1) -> float:
        loss = torch.zeros(())
        for _ in range(micro_batches):
            loss = self.model(torch.randn(32, 64)).pow(2).mean()
            loss.backward()  # type: ignore[no-untyped-call]
        for parameter in self.model.parameters():
            dist.all_reduce(parameter.grad)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return float(loss)

    def update_with_slow_rank(self) -> float:
        if self.rank == 1:
            self.long_micro_batch(2.5)
        return self.update_actor()

    def long_micro_batch(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        work = torch.randn(300, 300)
        while time.monotonic() < until:
            work = work @ work.T / 300

    def sleepy_reward(self) -> float:
        """A reward that waits for a grader of its own, two seconds every time."""
        if self.rank == 0:
            time.sleep(2.0)
        dist.barrier()
        return 1.0

    def save_checkpoint(self, megabytes: int = 400) -> int:
        if self.rank == 0:
            with (self.folder / "checkpoint.bin").open("wb") as f:
                for _ in range(megabytes):
                    f.write(os.urandom(1 << 20))
                    f.flush()
                    os.fsync(f.fileno())
        dist.barrier()
        return megabytes

    def compile_first(self) -> float:
        """The first step: a compiler in a child process, for a minute and more, and the other ranks wait."""
        if self.rank == 0:
            work = "import ast\nsource = 'x = ' + '+'.join(map(str, range(2000)))\nwhile True:\n    compile(ast.parse(source), 'k', 'exec')\n"
            subprocess.run([sys.executable, "-c", work], check=False)
        return self.update_actor()

    def sync_weights(self) -> int:
        weights = torch.zeros(1 << 23)
        dist.broadcast(weights, src=0)
        dist.barrier()
        return weights.numel()

    def validate(self, seconds: float) -> float:
        total = 0.0
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            total += float(self.model(torch.randn(256, 64)).sum())
        return total

    def train_on_loader(self, steps: int) -> int:
        for number, batch in enumerate(self.loader()):
            loss = self.model(batch).pow(2).mean()
            loss.backward()
            self.optimizer.step()
            if number == steps:
                break
        return steps

    def loader(self) -> Any:
        from torch.utils.data import DataLoader

        return DataLoader(Prompts(), batch_size=8, num_workers=2, prefetch_factor=2)


def serve_counters() -> object:
    """torch's worker server, as its debug server starts it in every rank."""
    from torch._C import _distributed_c10d as c10d

    return c10d._WorkerServer("127.0.0.1", 0)


class Prompts(torch.utils.data.Dataset):  # type: ignore[type-arg]
    """Each takes a while to tokenise."""

    def __len__(self) -> int:
        return 100_000

    def __getitem__(self, index: int) -> torch.Tensor:
        time.sleep(0.03)
        return torch.full((64,), float(index % 7))
