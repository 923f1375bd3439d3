"""A real tracer that holds a real process, for moments and for good."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from ray_rl_debug.collect.stops import Stops, tracer_of

pytestmark = pytest.mark.integration

HOLDS = """
import ctypes, os, sys, time
ATTACH, DETACH = 16, 17
libc, pid = ctypes.CDLL(None, use_errno=True), int(sys.argv[1])
libc.ptrace.argtypes = [ctypes.c_long] * 4
if libc.ptrace(ATTACH, pid, 0, 0):
    sys.exit(os.strerror(ctypes.get_errno()))
os.waitpid(pid, 0)
print("holds it", flush=True)
time.sleep(float(sys.argv[2]))
libc.ptrace(DETACH, pid, 0, 0)
"""


@pytest.fixture
def target() -> Iterator[int]:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as child:
        yield child.pid
        child.kill()


def holder(pid: int, seconds: float) -> subprocess.Popen[str]:
    child = subprocess.Popen([sys.executable, "-c", HOLDS, str(pid), str(seconds)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None
    if child.stdout.readline() != "holds it\n":
        pytest.skip(f"this machine lets nobody trace: {child.communicate()[1].strip()}")
    return child


@pytest.mark.parametrize(("seconds", "is_stopped"), [(0.4, False), (60.0, True)])
def test_only_a_tracer_that_stays_stops_a_process(target: int, seconds: float, is_stopped: bool) -> None:
    with holder(target, seconds) as child:
        assert tracer_of(target) == child.pid
        stat = Stops().read(target, None)
        child.kill()
        child.communicate()
    assert stat is not None
    # let go, it runs for a moment before it sleeps again
    assert (stat.state == "t") is is_stopped
