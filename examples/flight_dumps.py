"""Ranks that leave torch's Flight Recorder dumps, as a job does whose owner prepared it before it hung."""

from __future__ import annotations

import os
import threading
from pathlib import Path

FLIGHT_FOLDER = "EXAMPLES_FLIGHT_FOLDER"
"""Environment variable; without it nothing is written, as in a job that nobody prepared."""
EVERY_S = 1.0


def keep_dumping(rank: int) -> None:
    """Write ``dumps/rank_N`` and ``pids/N`` below the folder of the environment, again and again, in a thread of its own."""
    folder = os.environ.get(FLIGHT_FOLDER)
    if folder is not None:
        threading.Thread(target=_dump, args=(Path(folder), rank), name="flight-dumps", daemon=True).start()


def _dump(folder: Path, rank: int) -> None:
    from torch._C._distributed_c10d import _dump_fr_trace

    for name in ("dumps", "pids", "unfinished"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    unfinished = folder / "unfinished" / str(rank)
    unfinished.write_text(str(os.getpid()))
    unfinished.rename(folder / "pids" / str(rank))
    while not threading.Event().wait(EVERY_S):
        unfinished.write_bytes(_dump_fr_trace())
        unfinished.rename(folder / "dumps" / f"rank_{rank}")
