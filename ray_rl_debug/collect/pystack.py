"""pystack as a second engine: it also reads processes that py-spy cannot, and names who holds and who waits for the GIL."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from ray_rl_debug.bounded.programs import Finished, run_bounded
from ray_rl_debug.formats.pystack import PystackThread, parse


def find_pystack() -> str | None:
    """Path of the program beside our interpreter or on ``PATH``."""
    beside = Path(sys.executable).with_name("pystack")
    return str(beside) if os.access(beside, os.X_OK) else shutil.which("pystack")


def dump(binary: str, pid: int, *, timeout_s: float = 4.0, run: Callable[..., Finished] = run_bounded) -> tuple[PystackThread, ...] | str:
    """The threads of one process, or why there are none. The target is not stopped."""
    try:
        done = run([binary, "remote", "--no-block", str(pid)], timeout_s)
    except OSError as e:
        return f"pystack could not be started: {e.strerror}"
    if done.code is None:
        return f"pystack gave no answer in {timeout_s:g} s"
    threads = parse(done.out.decode(errors="replace").splitlines())
    if done.code != 0 or not threads:
        return f"pystack ended with {done.code} and no stacks"
    return threads
