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
    command = [sys.executable, "-m", "ray_rl_debug", "snapshot", "--json", "--quiet", *where, *(("--output", str(output)) if output else ())]
    variables = {k: v for k, v in os.environ.items() if k not in ("RAY_ADDRESS", "RAY_TMPDIR")}
    variables.update(PYTHONPATH=str(tool), RAY_AUTH_MODE="disabled", RAY_USAGE_STATS_ENABLED="0")
    began = time.monotonic()
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    took = time.monotonic() - began
    try:
        report = json.loads(done.stdout)
    except ValueError:
        report = {"error": (done.stderr or done.stdout)[-1000:]}
    if "verdict" not in report:
        said = report.get("error") or report
        report = {"verdict": {"state": "error", "summary": str(said)}, "findings": []}
    return Look(report, took)
