"""A machine whose cores others keep, and a collector that is held up: what is told of time is what was measured."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from integration.spinners import spinning

from ray_rl_debug.collect.lateness import LatenessMeter, read_stalled
from ray_rl_debug.collect.node import collect_node
from ray_rl_debug.collect.options import CollectOptions
from ray_rl_debug.model.snapshot import Node, Process

pytestmark = pytest.mark.integration

BUSY = "import time; print(flush=True); end = time.monotonic() + 300\nwhile time.monotonic() < end: pass"
HELD = """
import sys
from ray_rl_debug.collect.lateness import LatenessMeter
meter = LatenessMeter()
print(flush=True)
sys.stdin.readline()
late = meter.stop()
print(late.late_s, late.longest_s, late.waits, flush=True)
"""


@pytest.fixture
def busy() -> Iterator[int]:
    child = subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    yield child.pid
    child.kill()
    child.wait(10)
    child.stdout.close()


def collect(pid: int) -> tuple[Node, Process, float]:
    """Facts of a process, and how long it took to gather them."""
    began = time.monotonic()
    node = collect_node(CollectOptions(pids=(pid,), samples=3, interval_s=0.3, async_tasks=False, logs=False))
    return node, node.processes[0], time.monotonic() - began


def test_times_are_measured_while_others_keep_the_cores(busy: int) -> None:
    with spinning():
        node, process, took = collect(busy)
    times = [s.at_s for s in process.samples]
    assert len(times) == 3
    assert times == sorted(times)
    assert times[0] > 0.0 and times[-1] <= node.window_s <= took
    assert process.window_s is not None and process.cpu_s is not None
    assert times[-1] - times[0] <= process.window_s <= took
    # it had one of the cores at most, and its clock counts in hundredths
    assert process.cpu_s <= process.window_s + 0.05
    assert node.late_s is not None and node.longest_late_s is not None and node.timed_waits
    assert 0.0 <= node.longest_late_s <= node.late_s <= node.window_s  # a kernel may well wake us at once
    if read_stalled() is not None:
        assert node.cpu_pressure is not None and node.cpu_pressure > 0.3


def test_a_collector_that_is_held_up_knows_for_how_long() -> None:
    child = subprocess.Popen([sys.executable, "-c", HELD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None and child.stdin is not None
        child.stdout.readline()
        os.kill(child.pid, signal.SIGSTOP)
        time.sleep(1.0)
        os.kill(child.pid, signal.SIGCONT)
        child.stdin.write("\n")
        child.stdin.flush()
        late, longest, waits = (float(w) for w in child.stdout.readline().split())
    finally:
        child.kill()
        child.wait(10)
    assert 0.8 <= longest <= late
    assert waits >= 1


def test_a_wait_that_is_cut_short_is_not_late() -> None:
    late = LatenessMeter().stop()
    assert (late.late_s, late.longest_s, late.waits) == (0.0, 0.0, 0)
