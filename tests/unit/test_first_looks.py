"""What a second look may say of the time since the first: a process that stood at both may have run between."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import PIPE, Popen

import pytest

from ray_rl_debug.collect.discover import FoundProcess
from ray_rl_debug.collect.process_facts import has_stood, look
from ray_rl_debug.collect.procfs import PROC, read_stat


@pytest.fixture
def busy() -> Iterator[FoundProcess]:
    """A process that computes and neither reads nor writes."""
    with Popen([sys.executable, "-c", "print(flush=True)\nwhile True: pass"], stdout=PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        stat = read_stat(PROC / str(process.pid))
        assert stat is not None
        yield FoundProcess(pid=process.pid, kind="named", stat=stat, arguments=())
        process.kill()


def until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not is_so() and time.monotonic() < end:
        time.sleep(0.01)
    assert is_so()


def state(pid: int) -> str | None:
    stat = read_stat(PROC / str(pid))
    return stat.state if stat is not None else None


def stop(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)
    until(lambda: state(pid) == "T")


def test_one_that_a_signal_stops_all_the_time_has_stood(busy: FoundProcess) -> None:
    stop(busy.pid)
    assert has_stood(look(busy))


def test_one_that_ran_between_two_stops_has_not(busy: FoundProcess) -> None:
    stop(busy.pid)
    first = look(busy)
    os.kill(busy.pid, signal.SIGCONT)
    until(lambda: state(busy.pid) == "R")
    stop(busy.pid)
    assert not has_stood(first)


def test_one_of_which_nothing_was_measured_is_not_known_to_have_stood(tmp_path: Path, busy: FoundProcess) -> None:
    """Another user's: only its state may be read."""
    stop(busy.pid)
    (tmp_path / str(busy.pid)).mkdir()
    (tmp_path / str(busy.pid) / "stat").write_bytes((PROC / str(busy.pid) / "stat").read_bytes())
    first = look(busy, tmp_path)
    assert first.holder is not None
    assert not has_stood(first, tmp_path)
