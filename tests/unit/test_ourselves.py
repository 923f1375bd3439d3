"""Which processes are our own: asked from real ones, below real shells."""

from __future__ import annotations

import subprocess
import sys

_ASK = "import os; from ray_rl_debug.collect.ourselves import above_us; print(os.getppid(), *above_us())"


def _above(script: str) -> list[str]:
    return subprocess.run(["sh", "-c", script, "sh", sys.executable, _ASK], capture_output=True, text=True, check=True).stdout.split()


def test_a_shell_that_only_runs_us_is_ours() -> None:
    """So is that of a job that was submitted: it was called the most suspicious one on an idle cluster."""
    parent, *ours = _above('"$1" -c "$2"; true')
    assert ours[0] == parent


def test_a_shell_that_runs_others_too_is_not() -> None:
    parent, *ours = _above('sleep 60 & "$1" -c "$2"; kill $!')
    assert parent not in ours


def test_who_calls_us_from_python_is_not() -> None:
    calls = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {_ASK!r}], check=True)"
    out = subprocess.run([sys.executable, "-c", calls], capture_output=True, text=True, check=True).stdout.split()
    assert len(out) == 1
