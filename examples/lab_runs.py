"""One example as a process of its own: started, waited for until its hang is reached, and ended."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LAB = Path(__file__).resolve().parent / "hang_lab.py"
START_DEADLINE_S = 150.0
"""A little more than `hang_lab.READY_DEADLINE_S`: the program itself says which process did not come to its line."""


class NotReachedError(Exception):
    """The program ended, failed or took too long before its hang was reached."""


def start(
    name: str, log: Path, *, hold_s: float = 170.0, more: tuple[str, ...] = (), python: str = sys.executable
) -> tuple[subprocess.Popen[str], dict[str, Any]]:
    """The running program and the line that it announces: name, gcs_address, pids by seat, truth. What it prints goes into `log`.

    Raises NotReachedError with the end of the log.
    """
    with log.open("wb") as errors:
        lab = subprocess.Popen(
            [python, str(LAB), "run", name, "--hold", str(hold_s), *more],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    line = _first_line(lab)
    announced = json.loads(line) if line else {"error": "it ended, or said nothing in time"}
    if "error" in announced:
        release(lab)
        raise NotReachedError(f"{name}: {announced['error']}\n{log.read_text(errors='replace')[-2000:]}")
    return lab, announced


def _first_line(lab: subprocess.Popen[str]) -> str:
    assert lab.stdout is not None
    with selectors.DefaultSelector() as waiting:
        waiting.register(lab.stdout, selectors.EVENT_READ)
        return lab.stdout.readline() if waiting.select(START_DEADLINE_S) else ""


def release(lab: subprocess.Popen[str]) -> None:
    """Tell the program to end all that it started, and wait for it."""
    assert lab.stdin is not None
    assert lab.stdout is not None
    lab.stdin.close()
    try:
        lab.wait(30)
    except subprocess.TimeoutExpired:
        lab.kill()
        lab.wait()
    lab.stdout.close()


@contextlib.contextmanager
def running(name: str, log: Path, *, hold_s: float = 170.0, more: tuple[str, ...] = (), python: str = sys.executable) -> Iterator[dict[str, Any]]:
    """What `start` announces, while the program runs. `python`: the interpreter that runs it."""
    lab, announced = start(name, log, hold_s=hold_s, more=more, python=python)
    try:
        yield announced
    finally:
        release(lab)


def listed() -> dict[str, Any]:
    """All examples that can run here: story, nodes and truth by name. Those with collectives need torch."""
    done = subprocess.run([sys.executable, str(LAB), "list", "--json"], capture_output=True, text=True, check=True, timeout=120, env=dict(os.environ))
    return dict(json.loads(done.stdout))
