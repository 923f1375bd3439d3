"""A look ends no call of the process that is looked at."""

from __future__ import annotations

import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from programs import starting, wait_for

from ray_rl_debug.collect.cut_short import is_cut_short
from ray_rl_debug.collect.pyspy import dump, find_pyspy

pytestmark = pytest.mark.integration

WAITS = {
    "print": "print('x' * 10_000_000, file=sys.stderr)",
    "write": "os.write(os.pipe()[1], b'x' * 10_000_000)",
    "send": "a, b = socket.socketpair(); a.send(b'x' * 10_000_000)",
    "recv": "a, b = socket.socketpair(); b.send(b'ab'); a.recv(100, socket.MSG_WAITALL)",
}


@pytest.fixture
def start() -> Iterator:
    yield from starting()


@pytest.mark.parametrize("wait", WAITS)
def test_a_wait_that_a_stop_would_end_goes_on(start, wait: str) -> None:
    code = f"import os, socket, sys; {WAITS[wait]}; os.write(1, b'went on')"
    child = start(sys.executable, "-u", "-c", code, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for(lambda: is_cut_short(child.pid), "it waits in its call")
    for _ in range(3):
        outcome = dump(find_pyspy(), child.pid, timeout_s=30)
        assert (outcome.kind, outcome.nonblocking) == ("ok", True)
    time.sleep(0.2)
    assert not select.select([child.stdout], [], [], 0)[0], "its call ended early"
    assert is_cut_short(child.pid)
    assert Path(f"/proc/{child.pid}/status").read_text().partition("TracerPid:\t")[2].startswith("0\n")
