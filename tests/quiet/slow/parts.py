"""What the slow programs share."""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = os.environ.get("SLOW_FOLDER", "/tmp")
START = str(Path(__file__).with_name("start.py"))


def port() -> int:
    """One that is free now."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def burn(rounds: int = 200_000) -> None:
    """Some tenths of a second of a processor."""
    hashlib.pbkdf2_hmac("sha256", b"a", b"b", rounds)


def as_ranks(name: str, world: int) -> Iterator[subprocess.Popen[bytes]]:
    """One program for each rank, with the environment that torchrun gives."""
    shared = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port()), "WORLD_SIZE": str(world), "OMP_NUM_THREADS": "1"}
    for rank in range(world):
        yield subprocess.Popen([sys.executable, START, name], env={**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)})


def gloo() -> tuple[Any, Any, int]:
    """torch, its collectives, and the rank."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    return torch, dist, dist.get_rank()


def start_ray() -> Any:
    """A small cluster of its own; its address stands in a file then."""
    import ray

    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    Path(FOLDER, "address").write_text(ray.get_runtime_context().gcs_address)
    return ray
