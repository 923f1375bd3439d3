"""Descriptors at which the kernel itself tells something: news of files, a moment, the end of a process."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace
from scenes import Stacks, process, snapshot

from ray_rl_debug.collect.files import FileReader
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Certainty, Report, State
from ray_rl_debug.model.snapshot import OpenFile, Process

READ, POLL = 0, 7
OURS = OpenFile(fd=5, path="pipe:[77]", kind="pipe", inode=77, writable=False)
THEIRS = replace(OURS, fd=1, writable=True)
NEWS = OpenFile(fd=3, path="inotify", kind="inotify", watches=1)
TIMER = OpenFile(fd=3, path="timerfd", kind="timerfd", fires_in_s=20.0)
MOVED_TO = 0x80


@pytest.fixture
def descriptors(tmp_path: Path) -> Iterator[Sequence[int]]:
    """One that watches two folders, of which one was removed meanwhile; a timer of 50 s; this process."""
    libc = ctypes.CDLL(None)
    news, timer, ours = libc.inotify_init1(0), libc.timerfd_create(1, 0), os.pidfd_open(os.getpid())
    for name in ("stays", "goes"):
        (tmp_path / name).mkdir()
        libc.inotify_add_watch(news, str(tmp_path / name).encode(), MOVED_TO)
    (tmp_path / "goes").rmdir()
    libc.timerfd_settime(timer, 0, struct.pack("<qqqq", 0, 0, 50, 0), None)
    yield news, timer, ours
    for fd in (news, timer, ours):
        os.close(fd)


def test_what_the_kernel_tells_there_is_read(descriptors: Sequence[int], tmp_path: Path) -> None:
    news, timer, ours = descriptors
    files = {f.fd: f for f in FileReader().read(os.getpid()) or ()}
    stays = os.stat(tmp_path / "stays")
    assert (files[news].kind, files[news].watches) == ("inotify", 1)
    assert files[news].watched == (f"{os.major(stays.st_dev):02x}:{os.minor(stays.st_dev):02x} {stays.st_ino}",)
    assert files[timer].kind == "timerfd"
    assert 40 < (files[timer].fires_in_s or 0) <= 50
    assert (files[ours].kind, files[ours].of_pid) == ("pidfd", os.getpid())


def two(reader: OpenFile, wchan: str) -> Report:
    """A driver reads what its child prints; the child reads at a descriptor of the kernel's."""
    stacks = Stacks()
    driver = process(stacks, 10, "python train.py", "step@/job/train.py:43", kind="named", ppid=1, wchan="anon_pipe_read", syscall=READ, arg0=5)
    child = process(stacks, 20, "python watch.py", "look@/job/watch.py:23", kind="child", ppid=10, wchan=wchan, syscall=READ, arg0=3)
    return diagnose(snapshot(stacks.node([replace(driver, files=(OURS,)), replace(child, files=(THEIRS, reader))])))


def test_who_writes_a_watched_file_is_not_recorded() -> None:
    report = two(NEWS, "wait_woken")
    assert report.verdict.state is State.UNKNOWN
    finding = report.findings[0]
    assert finding.certainty is Certainty.POSSIBLE
    assert [w.pid for w in finding.who] == [20]
    assert "waits for news of the files that it watches" in finding.summary
    assert "socket" not in finding.summary


def test_what_was_watched_is_gone() -> None:
    report = two(replace(NEWS, watches=0), "wait_woken")
    assert report.verdict.state is State.HANG
    assert 20 in {w.pid for w in report.findings[0].who}
    assert "files that are no longer there" in report.findings[0].summary


@pytest.mark.parametrize(("fires_in_s", "state"), [(20.0, State.SLOW), (2e9, State.HANG), (None, State.HANG)], ids=["soon", "late", "not set"])
def test_a_timer_that_fires_soon_is_a_pause(fires_in_s: float | None, state: State) -> None:
    report = two(replace(TIMER, fires_in_s=fires_in_s), "do_wait_intr_irq")
    assert report.verdict.state is state
    assert all(f.certainty is Certainty.POSSIBLE for f in report.findings) is (state is State.SLOW)


def worker(stacks: Stacks, pid: int, wchan: str, syscall: int) -> Process:
    return process(stacks, pid, "python worker.py", f"work{pid}@/job/worker.py:7", kind="child", ppid=10, wchan=wchan, syscall=syscall, arg0=0)


def ends(*workers: tuple[int, str, int]) -> Report:
    """A driver polls the ends of its workers; its server, another child, has nothing to do."""
    stacks = Stacks()
    driver = process(stacks, 10, "python train.py", "step@/job/train.py:43", kind="named", ppid=1, wchan="do_poll", syscall=POLL, arg0=140_000)
    fds = tuple(range(3, 3 + len(workers)))
    files = tuple(OpenFile(fd=fd, path="pidfd", kind="pidfd", of_pid=pid) for fd, (pid, _, _) in zip(fds, workers, strict=True))
    driver = replace(driver, files=files, threads=(replace(driver.threads[0], waits_on_fds=fds),))
    server = process(stacks, 90, "python serve.py", "serve@/job/serve.py:7", kind="child", ppid=10, wchan="hrtimer_nanosleep", syscall=230)
    return diagnose(snapshot(stacks.node([driver, *(worker(stacks, *one) for one in workers), server])))


def test_the_end_of_a_child_is_awaited_at_a_descriptor() -> None:
    report = ends((20, "wait_for_partner", 257))
    assert report.verdict.state is State.HANG
    assert 20 in {w.pid for w in report.findings[0].who}
    assert "waits for a child process" in str(report.findings[0])


def test_the_first_of_several_ends_wakes_it() -> None:
    report = ends((20, "wait_for_partner", 257), (30, "hrtimer_nanosleep", 230))
    assert report.verdict.state is not State.HANG


def test_a_message_queue_tells_nobody() -> None:
    """Of System V and of POSIX: anybody may send."""
    stacks = Stacks()
    driver = process(stacks, 10, "python train.py", "step@/job/train.py:43", kind="named", ppid=1, wchan="do_msgrcv", syscall=70, arg0=0)
    child = process(stacks, 20, "python c.py", "wait@/job/c.py:23", kind="child", ppid=10, wchan="anon_pipe_read", syscall=READ, arg0=3)
    report = diagnose(snapshot(stacks.node([driver, child])))
    assert report.verdict.state is State.UNKNOWN
    assert all(f.certainty is Certainty.POSSIBLE for f in report.findings)


def test_who_waits_for_news_and_is_asked_by_nobody_is_at_rest() -> None:
    stacks = Stacks()
    driver = process(stacks, 10, "python train.py", "step@/job/train.py:43", kind="named", ppid=1, wchan="hrtimer_nanosleep", syscall=230)
    child = process(stacks, 20, "python watch.py", "look@/job/watch.py:23", kind="child", ppid=10, wchan="wait_woken", syscall=READ, arg0=3)
    report = diagnose(snapshot(stacks.node([driver, replace(child, files=(NEWS,))])))
    assert report.verdict.state is State.SLOW
    assert report.findings == ()


@pytest.mark.parametrize(("call", "state", "named"), [(230, State.SLOW, None), (257, State.HANG, 40)], ids=["it sleeps", "it stands"])
def test_a_follower_waits_for_who_writes_its_file(call: int, state: State, named: int | None) -> None:
    """A driver reads from ``tail -f``, which is no Python, has no stack, and is told of each line by the kernel."""
    stacks = Stacks()
    driver = process(stacks, 10, "python train.py", "step@/job/train.py:43", kind="named", ppid=1, wchan="anon_pipe_read", syscall=READ, arg0=5)
    tail = process(stacks, 20, "tail -f log", "x@/y.py:1", kind="child", ppid=10, wchan="do_poll", syscall=POLL, arg0=1)
    tail = replace(tail, samples=(), threads=(replace(tail.threads[0], waits_on_fds=(1, 3)),), files=(THEIRS, replace(NEWS, watched=("fe:00 88",))))
    wchan = "hrtimer_nanosleep" if call == 230 else "wait_for_partner"
    writer = process(stacks, 40, "python score.py", "score@/job/score.py:9", kind="child", ppid=10, wchan=wchan, syscall=call, arg0=0)
    log = OpenFile(fd=7, path="/job/log", kind="file", device="fe:00", inode=88, writable=True)
    report = diagnose(snapshot(stacks.node([replace(driver, files=(OURS,)), tail, replace(writer, files=(log,))])))
    assert report.verdict.state is state
    assert [w.pid for f in report.findings[:1] for w in f.who if f.certainty is not Certainty.POSSIBLE][-1:] == ([named] if named else [])
