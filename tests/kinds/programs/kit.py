"""What the programs share: marks that tell the outside who is where, steps, and work of irregular length.

A program is started as ``NAME.py FOLDER [--healthy]``. What it was told stands in the environment, so that its children know it too.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[3] / "examples"))
from ports import free_port

STEP = 3
"""The step at which a run that is not healthy leaves the usual way."""


def begin() -> None:
    """Reads the arguments; called by the first process only."""
    os.environ["KIT_FOLDER"] = str(Path(sys.argv[1]).resolve())
    os.environ["KIT_TWIN"] = "healthy" if "--healthy" in sys.argv else "other"
    mark("main")


def folder() -> Path:
    return Path(os.environ["KIT_FOLDER"])


def is_healthy() -> bool:
    return os.environ["KIT_TWIN"] == "healthy"


def differs(step: int) -> bool:
    """Whether the run leaves the usual way now. The first time it does, the outside is told."""
    if step < STEP or is_healthy():
        return False
    if not (folder() / "left").exists():
        _write("left", str(step))
    return True


def mark(name: str, pid: int | None = None, **more: Any) -> None:
    """Tells who has the role `name`; again, where it matters, that this process comes to its last line."""
    _write(f"{name}.json", json.dumps({"pid": pid or os.getpid(), **more}))


def step(number: int) -> None:
    _write("step", str(number))


def _write(name: str, text: str) -> None:
    unfinished = folder() / f".{name}.{os.getpid()}.{threading.get_ident()}"
    unfinished.write_text(text)
    unfinished.rename(folder() / name)


def work(scale: float = 1.0) -> float:
    """0.05 to 1.5 s, now and then 3 s; the processor is used or it is slept, as it comes."""
    seconds = (3.0 if random.random() < 0.04 else random.uniform(0.05, 1.5)) * scale
    if random.random() < 0.3:
        time.sleep(seconds)
        return seconds
    until, text = time.monotonic() + seconds, b"x" * 4096
    while time.monotonic() < until:
        for _ in range(50):
            text = hashlib.sha256(text).digest() * 128
        time.sleep(0.005)
    return seconds


def pause() -> float:
    """As `work`, for coroutines to sleep."""
    return 3.0 if random.random() < 0.04 else random.uniform(0.05, 1.5)


LONG_S = 28.0
"""A legitimate phase of a healthy twin that outlasts any look at it."""


def in_c(seconds: float) -> None:
    """About so long inside one call of C, without the interpreter's lock, at full speed of a processor."""
    began, rounds = time.monotonic(), 50_000
    hashlib.pbkdf2_hmac("sha256", b"graph", b"shapes", rounds)
    hashlib.pbkdf2_hmac("sha256", b"graph", b"shapes", int(rounds * seconds / (time.monotonic() - began)))


def is_late(step: int) -> bool:
    """Whether the healthy twin has come to its long phase, where the other one hangs."""
    return is_healthy() and step >= STEP


def fifo(name: str) -> str:
    """A named pipe that nobody writes."""
    path = folder() / name
    try:
        os.mkfifo(path)
    except FileExistsError:
        pass
    return str(path)


def until_there(name: str, seconds: float = 60.0) -> dict[str, Any]:
    """Waits for a mark of another process."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            return dict(json.loads((folder() / f"{name}.json").read_text()))
        except OSError:
            time.sleep(0.05)
    raise TimeoutError(name)


def ranks_as_programs(file: str, world: int) -> list[subprocess.Popen[bytes]]:
    """One program per rank with the environment that torchrun gives."""
    port = free_port()
    shared = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(world), "OMP_NUM_THREADS": "1"}
    return [subprocess.Popen([sys.executable, file], env={**shared, "RANK": str(r), "LOCAL_RANK": str(r)}) for r in range(world)]
