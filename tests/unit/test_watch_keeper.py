"""The process that keeps the companion alive: real processes, killed in every way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

PROGRAM = """
import os, signal, sys
from ray_rl_debug.bounded.stop_event import StopEvent
from ray_rl_debug.watch.keeper import keep_alive
code = keep_alive(first_pause_s=0.05)
if code is not None:
    sys.exit(code)
stop = StopEvent()
signal.signal(signal.SIGTERM, lambda n, f: stop.set())
signal.signal(signal.SIGINT, lambda n, f: stop.set())
print(os.getpid(), flush=True)
ends = sys.argv[1]
if ends.isdigit():
    sys.exit(int(ends))
if ends == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
stop.wait(60)
print("left", flush=True)
sys.exit(1 if stop.is_set() else 9)
"""


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[str]]]:
    all_started: list[subprocess.Popen[str]] = []
    yield all_started
    for one in all_started:
        one.kill()
        one.communicate(timeout=10)


def start(started: list[subprocess.Popen[str]], ends: str = "never") -> subprocess.Popen[str]:
    one = subprocess.Popen([sys.executable, "-c", PROGRAM, ends], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    started.append(one)
    return one


def worker_of(one: subprocess.Popen[str]) -> int:
    assert one.stdout is not None
    return int(one.stdout.readline())


def is_gone(pid: int, seconds: float = 60.0) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX":
                return True
        except OSError:
            return True
        time.sleep(0.02)
    return False


def test_killed_worker_is_started_again(started: list[subprocess.Popen[str]]) -> None:
    one = start(started)
    first = worker_of(one)
    assert first != one.pid
    os.kill(first, signal.SIGKILL)
    second = worker_of(one)
    assert second not in (first, one.pid)
    one.send_signal(signal.SIGTERM)
    said, errors = one.communicate(timeout=60)
    assert one.returncode == 1
    assert said == "left\n"
    assert "the companion was ended by signal 9" in errors


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_who_is_asked_to_end_ends_and_takes_the_worker_along(started: list[subprocess.Popen[str]], how: signal.Signals) -> None:
    one = start(started)
    worker = worker_of(one)
    one.send_signal(how)
    said, _ = one.communicate(timeout=60)
    assert (one.returncode, said) == (1, "left\n")
    assert is_gone(worker)


def test_worker_ends_with_its_keeper(started: list[subprocess.Popen[str]]) -> None:
    one = start(started)
    worker = worker_of(one)
    one.kill()
    assert is_gone(worker)


@pytest.mark.parametrize("code", ["0", "1", "2", "3", "130"])
def test_end_that_is_meant_is_the_end(started: list[subprocess.Popen[str]], code: str) -> None:
    one = start(started, code)
    said, errors = one.communicate(timeout=60)
    assert (one.returncode, len(said.splitlines()), errors) == (int(code), 1, "")


def test_what_dies_at_once_every_time_is_given_up() -> None:
    program = PROGRAM.replace("first_pause_s=0.05", "first_pause_s=0.001")
    done = subprocess.run([sys.executable, "-c", program, "kill"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 3
    assert len(done.stdout.splitlines()) == 11
    assert done.stderr.splitlines()[-1].endswith("10 times in a row; it is not started again")
