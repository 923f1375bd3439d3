"""Ray's own ``ray.timeline()`` by a process of its own: it takes a connection to the cluster, has no deadline, and leaves threads behind."""

from __future__ import annotations

import json
import os
from typing import Any

from ray_rl_debug.bounded.own_python import own_program
from ray_rl_debug.bounded.programs import run_bounded
from ray_rl_debug.collect.pyspy import Run

DEADLINE_S = 60.0
MAX_BYTES = 256 << 20


def export(address: str, *, deadline_s: float = DEADLINE_S, run: Run = run_bounded) -> list[dict[str, Any]]:
    """The rows.

    Raises:
        TimeoutError: no answer in time.
        RuntimeError: it ended without rows; the message is the last line it wrote.
    """
    done = run(own_program(f"from {__name__} import main; main({address!r})"), deadline_s, max_bytes=MAX_BYTES)
    if done.timed_out:
        raise TimeoutError(f"ray.timeline() did not answer in {deadline_s:g} s")
    if done.code != 0:
        last = (done.err.decode("utf-8", "replace").strip().splitlines() or [f"ended with status {done.code}"])[-1]
        raise RuntimeError(last[:300])
    return [r for r in json.loads(done.out) if isinstance(r, dict)]


def main(address: str) -> None:
    """What the process of its own does: the rows go to standard output, Ray's own prints to stderr."""
    out = os.dup(1)
    os.dup2(2, 1)
    import ray

    ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    with os.fdopen(out, "w") as whole:
        json.dump(list(ray.timeline() or ()), whole)
