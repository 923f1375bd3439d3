"""How long a thread that sleeps will sleep on, by the arguments of its system call."""

from __future__ import annotations

import signal
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from ray_rl_debug.bounded.calls import within
from ray_rl_debug.collect.procfs import read_text
from ray_rl_debug.collect.sleep_limits import read_sleep_limits

PID = 7
NOW_S = 1000.0


def proc_with(folder: Path, syscall: str, *, memory: bytes = b"", wchan: str = "hrtimer_nanosleep", offset: str = "") -> Path:
    task = folder / str(PID) / "task" / str(PID)
    task.mkdir(parents=True)
    (task / "syscall").write_text(syscall)
    (task / "wchan").write_text(wchan)
    (folder / str(PID) / "mem").write_bytes(memory)
    if offset:
        (folder / str(PID) / "timens_offsets").write_text(offset)
    return folder


def timespec(seconds: float) -> bytes:
    return bytes(16) + struct.pack("<qq", int(seconds), int(seconds % 1 * 1e9))


FUTEX = "202 0x40 0x{op:x} 0x0 0x{limit:x} 0x0 0xffffffff 0x0 0x0"


@pytest.mark.parametrize(
    ("syscall", "memory", "left_s"),
    [
        (FUTEX.format(op=0x189, limit=0x10), timespec(1028.5), 28.5),
        (FUTEX.format(op=0x89, limit=0x10), timespec(1004), 4.0),
        (FUTEX.format(op=0x80, limit=0x10), timespec(7), 7.0),
        (FUTEX.format(op=0x189, limit=0x10).replace("202", "219"), timespec(1020), 20.0),
        (FUTEX.format(op=0x189, limit=0), timespec(1028), None),
        (FUTEX.format(op=0x81, limit=0x10), timespec(1028), None),
        (FUTEX.format(op=0x89, limit=0x10), timespec(900), None),
    ],
    ids=["until a moment", "of the monotonic clock", "for a time", "interrupted", "without a limit", "no wait", "long over"],
)
def test_a_wait_in_a_futex_may_have_a_limit(tmp_path: Path, syscall: str, memory: bytes, left_s: float | None) -> None:
    assert read(proc_with(tmp_path, syscall, memory=memory, wchan="futex_do_wait")) == left_s


def read(proc: Path) -> float | None:
    return read_sleep_limits(PID, [PID], proc, machine="x86_64", clock=lambda _: NOW_S).get(PID)


@pytest.mark.parametrize(
    ("syscall", "memory", "left_s"),
    [
        ("230 0x1 0x1 0x10 0x0 0x0 0x0 0x0 0x0", timespec(1003.5), 3.5),
        ("230 0x1 0x0 0x10 0x0 0x0 0x0 0x0 0x0", timespec(3600), 3600.0),
        ("35 0x10 0x0 0x0 0x0 0x0 0x0 0x0 0x0", timespec(2.25), 2.25),
        ("219 0x10 0x0 0x0 0x0 0x0 0x0 0x0 0x0", timespec(2.25), 2.25),
        ("219 0x0 0x0 0x10 0x0 0x0 0x0 0x0 0x0", timespec(5), 5.0),
        ("23 0x0 0x0 0x0 0x0 0x10 0x0 0x0 0x0", bytes(16) + struct.pack("<qq", 4, 500_000), 4.5),
        ("270 0x0 0x0 0x0 0x0 0x10 0x0 0x0 0x0", timespec(4), 4.0),
    ],
    ids=["until a moment", "for a time", "nanosleep", "interrupted", "interrupted, with a clock", "select of nothing", "pselect of nothing"],
)
def test_the_time_that_is_left(tmp_path: Path, syscall: str, memory: bytes, left_s: float) -> None:
    assert read(proc_with(tmp_path, syscall, memory=memory)) == left_s


@pytest.mark.parametrize(
    ("syscall", "memory"),
    [
        ("230 0x1 0x1 0x10 0x0 0x0 0x0 0x0 0x0", timespec(2)),
        ("230 0x1 0x1 0x10 0x0 0x0 0x0 0x0 0x0", timespec(1e9)),
        ("230 0x99 0x1 0x10 0x0 0x0 0x0 0x0 0x0", timespec(1003)),
        ("230 0x1 0x0 0xffffffffffffffff 0x0 0x0 0x0 0x0 0x0", timespec(1)),
        ("230 0x1 0x0 0x10 0x0 0x0 0x0 0x0 0x0", bytes(20)),
        ("23 0x5 0x0 0x0 0x0 0x10 0x0 0x0 0x0", timespec(4)),
        ("23 0x0 0x0 0x0 0x0 0x0 0x0 0x0 0x0", timespec(4)),
        ("202 0x10 0x80 0x0 0x0 0x0 0x0 0x0 0x0", timespec(4)),
        ("running", b""),
        ("", b""),
    ],
    ids=["long over", "years", "no such clock", "no memory", "cut off", "of descriptors", "without end", "a lock", "running", "refused"],
)
def test_what_cannot_be_told_is_left_out(tmp_path: Path, syscall: str, memory: bytes) -> None:
    assert read(proc_with(tmp_path, syscall, memory=memory)) is None


def test_a_clock_of_a_namespace_of_its_own_is_another(tmp_path: Path) -> None:
    offset = "monotonic           -100         0\nboottime            0         0\n"
    proc = proc_with(tmp_path, "230 0x1 0x1 0x10 0x0 0x0 0x0 0x0 0x0", memory=timespec(903), offset=offset)
    assert read(proc) == 3.0
    (proc / "self").mkdir()
    (proc / "self" / "timens_offsets").write_text(offset)
    assert read(proc) is None  # ours as well: that moment is long over


@pytest.mark.parametrize(
    ("syscall", "wchan", "left_s"),
    [
        ("7 0x40 0x1 0x6d60 0x0 0x0 0x0 0x0 0x0", "poll_schedule_timeout", 28.0),
        ("219 0x40 0x1 0x6d60 0x0 0x0 0x0 0x0 0x0", "poll_schedule_timeout", 28.0),
        ("232 0x3 0x7f00 0x10 0x1388 0x0 0x8 0x0 0x0", "ep_poll", 5.0),
        ("281 0x3 0x7f00 0x10 0x1388 0x0 0x8 0x0 0x0", "ep_poll", 5.0),
        ("232 0x3 0x7f00 0x10 0xffffffff 0x0 0x8 0x0 0x0", "ep_poll", None),
        ("7 0x40 0x1 0xffffffff 0x0 0x0 0x0 0x0 0x0", "poll_schedule_timeout", None),
        ("7 0x40 0x1 0xffffffffffffffff 0x0 0x0 0x0 0x0 0x0", "poll_schedule_timeout", None),
        ("128 0x40 0x0 0x10 0x8 0x0 0x0 0x0 0x0", "do_sigtimedwait", 28.0),
        ("128 0x40 0x0 0x0 0x8 0x0 0x0 0x0 0x0", "do_sigtimedwait", None),
    ],
    ids="poll,interrupted,epoll,epoll with signals,epoll without limit,without a limit,the same widened,a signal,a signal without limit".split(","),
)
def test_a_wait_for_a_message_or_a_signal_may_have_a_limit(tmp_path: Path, syscall: str, wchan: str, left_s: float | None) -> None:
    assert read(proc_with(tmp_path, syscall, memory=timespec(28), wchan=wchan)) == left_s


def test_a_real_sleeper() -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(500)"])
    try:

        def sleeping() -> float:
            while True:
                told = read_sleep_limits(child.pid, [child.pid]).get(child.pid)
                if told is not None and "nanosleep" in (read_text(Path(f"/proc/{child.pid}/wchan")) or "nanosleep"):
                    return told

        assert 400 < within(30.0, sleeping) <= 500
    finally:
        child.kill()
        child.wait()


def test_a_real_wait_with_a_limit() -> None:
    """And after an interruption, as by a look of py-spy."""
    program = "import threading; threading.Event().wait(500)"
    child = subprocess.Popen([sys.executable, "-c", program])
    try:

        def waiting() -> float:
            while True:
                told = read_sleep_limits(child.pid, [child.pid]).get(child.pid)
                if told is not None:
                    return told

        assert 400 < within(30.0, waiting) <= 500
        child.send_signal(signal.SIGSTOP)
        child.send_signal(signal.SIGCONT)
        assert 400 < within(30.0, waiting) <= 500
    finally:
        child.kill()
        child.wait()
