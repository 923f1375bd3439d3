"""Locks that belong to an open file (F_OFD_SETLK) have no owner in the kernel's table; the descriptors of processes tell who has one."""

from __future__ import annotations

import fcntl
import os
import struct
from pathlib import Path

from msgspec.structs import replace

from ray_rl_debug.collect.files import FileReader
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Certainty, Report, State
from ray_rl_debug.model.snapshot import FileLock, OpenFile, Process, Thread
from tests.unit.scenes import Stacks, process, snapshot

F_OFD_SETLK = 37
REPLAY = OpenFile(fd=3, path="/job/replay", kind="file", inode=5, device="08:01", writable=True)
LOCKS = "lock@/job/replay.py:9 go@/job/replay.py:20"
WAITING = tuple(FileLock(lock=1, kind="OFDLCK", access="WRITE", pid=-1, device="08:01", inode=5, waiting=waits) for waits in (False, True))


def test_who_has_a_lock_of_an_open_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "replay"
    path.write_bytes(bytes(100))
    with path.open("r+b") as locked, path.open("r+b") as other:
        fcntl.fcntl(locked, F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 10, 0))
        found = {f.fd: f.is_locked for f in FileReader().read(os.getpid()) or ()}
        assert found[locked.fileno()] is True
        assert found[other.fileno()] is None


def judged(*, sampler_waits: bool, is_read: bool = True) -> Report:
    """A learner waits for a lock of the file of which the sampler has locked a part."""
    stacks = Stacks()
    at_lock = Thread(tid=0, comm="python", state="S", cpu_s=0.0, wchan="fcntl_setlk", call="fcntl", syscall_arg0=3)
    asleep = Thread(tid=0, comm="python", state="S", cpu_s=0.0, wchan="hrtimer_nanosleep", call="clock_nanosleep", wakes_in_s=20.0)

    def one(pid: int, waits: bool) -> Process:
        text = LOCKS if waits else "merge@/job/replay.py:30 go@/job/replay.py:22"
        made = process(stacks, pid, "python replay.py", text, kind="child", ppid=100)
        file = replace(REPLAY, is_locked=True if is_read else None)
        return replace(made, threads=(replace(at_lock if waits else asleep, tid=pid),), files=(file,))

    parent = process(stacks, 100, "python run.py", "wait@/usr/lib/python3.11/subprocess.py:9 main@/job/run.py:3", kind="named", wchan="do_wait")
    return diagnose(snapshot(stacks.node([replace(parent, files=()), one(200, True), one(201, sampler_waits)], locks=WAITING)))


def test_two_that_lock_parts_of_one_file_crosswise_are_a_ring() -> None:
    report = judged(sampler_waits=True)
    assert report.verdict.state is State.HANG
    assert {w.pid for w in report.findings[0].who} == {200, 201}


def test_who_keeps_its_part_for_some_time_is_slow_and_who_waits_is_no_culprit() -> None:
    report = judged(sampler_waits=False)
    assert report.verdict.state is State.SLOW
    assert all(f.certainty is Certainty.POSSIBLE for f in report.findings)


def test_nobody_is_accused_where_the_owner_was_not_read() -> None:
    report = judged(sampler_waits=True, is_read=False)
    assert all(f.certainty is Certainty.POSSIBLE for f in report.findings)
