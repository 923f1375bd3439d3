"""Locks on files and lock files: every waiter is seen, the holder is named, and a build that goes on is no hang."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from scenes import BARRIER, EXECUTOR, MAIN, RENDEZVOUS, Stacks, process, snapshot

from ray_rl_debug.analyze.view import build_view
from ray_rl_debug.analyze.waits_file_locks import file_lock_edges
from ray_rl_debug.collect.files import read_locks
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Cause, Certainty, Report, State
from ray_rl_debug.model.snapshot import AwaitedFile, FileLock, OpenFile, Process

# As Linux 6.8 prints one holder and three who wait for it one behind the other.
ROWS = """\
1: FLOCK  ADVISORY  WRITE 100 fe:00:77 0 EOF
1: -> FLOCK  ADVISORY  WRITE 101 fe:00:77 0 EOF
1:  -> FLOCK  ADVISORY  WRITE 102 fe:00:77 0 EOF
1:   -> FLOCK  ADVISORY  WRITE 103 fe:00:77 0 EOF
2: POSIX  ADVISORY  READ 104 fe:00:78 0 EOF
"""
FIT = f"Cache.fit@app/cache.py:20 {EXECUTOR} {MAIN}"


def test_those_who_wait_behind_others_are_seen_too(tmp_path: Path) -> None:
    (tmp_path / "locks").write_text(ROWS)
    assert [(row.pid, row.waiting) for row in read_locks(tmp_path)] == [(100, False), (101, True), (102, True), (103, True), (104, False)]


def ranks(stacks: Stacks, *texts: str, syscall: int | None = None) -> list[Process]:
    return [process(stacks, 100 + i, "ray::Cache.fit", f"{text} {FIT}", rank=i, size=len(texts), syscall=syscall) for i, text in enumerate(texts)]


def test_a_rank_that_waits_in_a_barrier_inside_of_the_lock_is_the_one_to_name() -> None:
    stacks = Stacks()
    waits = "Cache.prepare@app/cache.py:9"
    found = ranks(stacks, f"{BARRIER} {waits}", waits, waits)
    found[1:] = [replace(p, threads=(replace(p.threads[0], syscall=73, wchan="locks_lock_inode_wait"),)) for p in found[1:]]
    locks = tuple(FileLock(lock=1, kind="FLOCK", access="WRITE", pid=100 + i, device="fe:00", inode=77, waiting=i > 0) for i in range(3))
    report = diagnose(snapshot(stacks.node(found, locks=locks)))
    (root,) = (f for f in report.findings if f.root)
    assert (report.verdict.state, root.cause, [w.pid for w in root.who]) == (State.HANG, Cause.LOCK_DEADLOCK, [100])
    assert {v.pid for v in root.victims} == {101, 102}


BATON = "FileBaton.wait@torch/utils/file_baton.py:50 _jit_compile@torch/utils/cpp_extension.py:2100 load@torch/utils/cpp_extension.py:1600"
BUILDS = "_run_ninja_build@torch/utils/cpp_extension.py:2500 _jit_compile@torch/utils/cpp_extension.py:2100 load@torch/utils/cpp_extension.py:1600"


def extension(*texts: str, busy: bool = False, file: AwaitedFile | None = None) -> Report:
    stacks = Stacks()
    found = ranks(stacks, *texts, RENDEZVOUS)
    if busy:
        found[1] = replace(found[1], cpu_s=1.9, threads=(replace(found[1].threads[0], state="R", cpu_s=1.9),))
    return diagnose(snapshot(stacks.node(found, awaited_files=(file,) if file is not None else ())))


def test_a_lock_file_of_a_build_that_was_killed() -> None:
    report = extension(BATON, BATON)
    assert (report.verdict.state, report.findings[0].cause) == (State.HANG, Cause.BLOCKED_IO)
    assert {w.pid for f in report.findings if f.root for w in f.who} == {100, 101}
    assert any("lock file" in line for line in report.findings[0].remedy)


def test_ranks_that_wait_for_the_one_that_builds() -> None:
    report = extension(BATON, BUILDS, busy=True)
    assert report.verdict.state is not State.HANG
    assert 100 not in {w.pid for f in report.findings for w in f.who}


LEFT = AwaitedFile(path="/cache/py311/flash/lock", waiters=(100, 101), made_time_s=198.0 - 7200, unread=0)
"""Written two hours before the capture, which began at 198 s."""
AITER = "FileBaton.wait@aiter/jit/utils/file_baton.py:40 mp_lock@aiter/jit/core.py:60 build_module@aiter/jit/core.py:300"
ELSEWHERE = "train_tokenizer@app/tokens.py:4"


@pytest.mark.parametrize("stack", [BATON, AITER], ids=["torch", "AITER"])
def test_a_lock_file_that_nobody_holds_open_is_left_behind(stack: str) -> None:
    report = extension(stack, stack, file=LEFT)
    finding = report.findings[0]
    assert (report.verdict.state, finding.id, [w.pid for w in finding.who]) == (State.HANG, "RRD508", [100, 101])
    assert finding.summary == "2 processes wait until the lock file /cache/py311/flash/lock goes away, and nobody is left who would remove it"
    assert finding.evidence[-1].text == "/cache/py311/flash/lock: written 2 h before this look, and no process of node1 holds it open"
    assert "rm /cache/py311/flash/lock" in finding.remedy[0]


def test_a_rank_that_builds_another_extension_does_not_hide_a_lock_file_that_was_left_behind() -> None:
    report = extension(BATON, BUILDS, busy=True, file=replace(LEFT, waiters=(100,)))
    assert [(f.id, [w.pid for w in f.who]) for f in report.findings if f.root] == [("RRD508", [100])]


@pytest.mark.parametrize(
    "file",
    [
        replace(LEFT, holders=(4711,)),  # another job builds
        replace(LEFT, unread=1),  # its maker may be one that could not be asked
        replace(LEFT, made_time_s=199.0),  # of this very moment: the next builder has just taken it
        AwaitedFile(path=LEFT.path, waiters=LEFT.waiters, mount="nfs4 home:/cache"),  # its maker may be on another machine
    ],
    ids=["held", "not all read", "new", "network mount"],
)
def test_a_lock_file_that_somebody_may_still_remove(file: AwaitedFile) -> None:
    assert "RRD508" not in {f.id for f in extension(BATON, BATON, file=file).findings}


def test_whoever_holds_the_lock_file_open_is_waited_for_wherever_it_is() -> None:
    report = extension(BATON, ELSEWHERE, busy=True, file=replace(LEFT, waiters=(100,), holders=(101,)))
    assert report.verdict.state is not State.HANG
    assert 100 not in {w.pid for f in report.findings for w in f.who}


def test_nobody_of_the_job_is_accused_where_another_program_holds_the_lock_file() -> None:
    report = extension(BATON, BATON, file=replace(LEFT, holders=(4711,)))
    assert {w.pid for f in report.findings if f.root for w in f.who} <= {4711}


LICENCE = OpenFile(fd=5, path="/srv/licence", kind="file", inode=77, device="fe:00", writable=True)
LOG = OpenFile(fd=1, path="/srv/log", kind="file", inode=12, device="fe:00", writable=True)


def locked(
    *, taker_has: tuple[OpenFile, ...] | None, tool_has: tuple[OpenFile, ...] | None, kind: str = "FLOCK", waits_too: bool = False
) -> list[tuple[int, Certainty]]:
    """Whom one waits for at a lock that pid 100 took, and may wait for too; pid 300 is a child of that one."""
    stacks = Stacks()
    taker = replace(process(stacks, 100, "python worker.py", "work@app/worker.py:9", kind="child", ppid=10), files=taker_has)
    waits = replace(process(stacks, 101, "python worker.py", "lock@app/worker.py:5", kind="child", ppid=10), files=(LICENCE, LOG))
    tool = replace(process(stacks, 300, "python tool.py", "run@app/tool.py:3", kind="child", ppid=100), files=tool_has)
    waiting = [(100, False), *([(100, True)] if waits_too else []), (101, True)]
    locks = tuple(FileLock(lock=1, kind=kind, access="WRITE", pid=pid, device="fe:00", inode=77, waiting=is_waiting) for pid, is_waiting in waiting)
    view = build_view(snapshot(stacks.node([taker, waits, tool], locks=locks)))
    return [(int(e.target.rpartition("/")[2]), e.certainty) for e in file_lock_edges(view)]


@pytest.mark.parametrize(
    ("taker_has", "tool_has", "found"),
    [
        ((LICENCE, LOG), (LICENCE, LOG), [(100, Certainty.PROVEN)]),
        ((LOG,), (LICENCE, LOG), [(300, Certainty.PROVEN)]),
        ((LOG,), (LOG,), [(100, Certainty.POSSIBLE)]),
        (None, (LICENCE, LOG), [(100, Certainty.POSSIBLE)]),
        ((LOG,), None, [(100, Certainty.POSSIBLE)]),
    ],
    ids=["has it open", "a child has inherited it", "nobody has it open", "its files were not read", "those of its child were not read"],
)
def test_a_lock_lasts_with_whoever_has_inherited_the_open_file(
    taker_has: tuple[OpenFile, ...] | None, tool_has: tuple[OpenFile, ...] | None, found: list[tuple[int, Certainty]]
) -> None:
    assert locked(taker_has=taker_has, tool_has=tool_has) == found


def test_who_took_a_lock_and_closed_the_file_may_wait_for_it_with_the_others() -> None:
    assert locked(taker_has=(LICENCE, LOG), tool_has=(LICENCE, LOG), waits_too=True) == [(300, Certainty.PROVEN), (300, Certainty.PROVEN)]
    has_both = (LICENCE, replace(LICENCE, fd=6), LOG)  # it has not closed the file with which it took the lock
    assert locked(taker_has=has_both, tool_has=(LICENCE, LOG), waits_too=True) == [(100, Certainty.PROVEN)]


def test_locks_of_posix_are_not_inherited() -> None:
    assert locked(taker_has=(LOG,), tool_has=(LICENCE, LOG), kind="POSIX") == [(100, Certainty.PROVEN)]
