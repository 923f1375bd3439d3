"""The command under test, run against a program from outside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

CHECKOUT = Path(__file__).parents[2]
DEADLINE_S = 240.0


class Look(NamedTuple):
    """One snapshot."""

    report: dict[str, Any]
    seconds: float


def snapshot(where: Sequence[str], output: Path | None = None, tool: Path = CHECKOUT) -> Look:
    """``where``: the options that say what is looked at. Errors come as a report with the state *error*."""
    return _run(["snapshot", *where, *(("--output", str(output.resolve())) if output else ())], tool)


def report(file: Path, tool: Path = CHECKOUT) -> Look:
    """The same from a kept snapshot."""
    return _run(["report", str(file.resolve())], tool)


def _run(arguments: Sequence[str], tool: Path) -> Look:
    command = [sys.executable, "-m", "ray_rl_debug", *arguments, "--json", "--quiet"]
    variables = {k: v for k, v in os.environ.items() if k not in ("RAY_ADDRESS", "RAY_TMPDIR")}
    variables.update(PYTHONPATH=str(tool), RAY_AUTH_MODE="disabled", RAY_USAGE_STATS_ENABLED="0")
    began = time.monotonic()
    # "-m" looks into the current folder before PYTHONPATH.
    done = subprocess.run(command, env=variables, cwd=tool, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    took = time.monotonic() - began
    try:
        said = json.loads(done.stdout)
    except ValueError:
        said = {"error": (done.stderr or done.stdout)[-1000:]}
    if "verdict" not in said:
        said = {"verdict": {"state": "error", "summary": str(said.get("error") or said)}, "findings": []}
    return Look(said, took)
