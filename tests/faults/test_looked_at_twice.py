"""Somebody else looks at the job at the same time."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator

import pytest
from processes import started, troubles, wait_for

pytestmark = pytest.mark.integration

TARGET = """
import sys, threading, time
def works():
    while True:
        sum(range(1000))
        time.sleep(0.001)
threading.Thread(target=works, daemon=True).start()
print('ready', flush=True)
works()
"""
HOLDS_AGAIN = """
import ctypes, os, sys, time
ATTACH, DETACH = 16, 17
libc, pid = ctypes.CDLL(None, use_errno=True), int(sys.argv[1])
libc.ptrace.argtypes = [ctypes.c_long] * 4
while True:
    if libc.ptrace(ATTACH, pid, 0, 0) == 0:
        os.waitpid(pid, 0)
        print("holds", flush=True)
        time.sleep(0.2)
        libc.ptrace(DETACH, pid, 0, 0)
    time.sleep(0.05)
"""


@contextlib.contextmanager
def profiler(pid: int) -> Iterator[None]:
    with subprocess.Popen([sys.executable, "-c", HOLDS_AGAIN, str(pid)], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "holds\n"
        yield
        child.kill()


def snapshot(pid: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "ray_rl_debug", "snapshot", "--pid", str(pid), "--samples", "3", "--interval", "0.3", "--json"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


@pytest.mark.slow
def test_a_profiler_holds_the_process_most_of_the_time() -> None:
    """Somebody's profiler stops a busy process for four fifths of the time.

    The process is not called stopped, and no hang is told.
    """
    with started(TARGET) as pid, profiler(pid):
        for _ in range(3):
            report = json.loads(snapshot(pid).communicate(timeout=90)[0])
            assert report["verdict"]["state"] != "hang", report["verdict"]


def test_four_people_look_at_once() -> None:
    """Four snapshots of one busy process are taken at the same time.

    None of them tells of a hang, and the process is free two seconds after the last.
    """
    with started(TARGET) as pid:
        states = {json.loads(child.communicate(timeout=90)[0])["verdict"]["state"] for child in [snapshot(pid) for _ in range(4)]}
        assert "hang" not in states
        wait_for(lambda: not troubles(pid), f"left behind: {troubles(pid)}", 2)
