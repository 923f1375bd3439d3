"""The libraries of numbers start no threads of their own, and what they were told is forgotten."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import os
from ray_rl_debug.metrics.statistics.numeric import load
numpy, _ = load()
many = numpy.ones((600, 600))
many @ many
print(len(os.listdir("/proc/self/task")), os.environ.get("OPENBLAS_NUM_THREADS"))
"""


def _threads(**told: str) -> str:
    env = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    return subprocess.run([sys.executable, "-c", PROGRAM], env=env | told, capture_output=True, text=True, check=True).stdout.strip()


def test_statistics_take_one_core_and_tell_nobody_else() -> None:
    assert _threads() == "1 None"


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one core: the libraries start no threads anyway")
def test_who_says_otherwise_is_heard() -> None:
    assert _threads(OPENBLAS_NUM_THREADS="2") == "3 2"  # the one that asks, and one more in numpy's library and in scipy's
