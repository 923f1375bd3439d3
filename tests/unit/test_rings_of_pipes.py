"""A process and its child that wait for each other: one for the end, the other for a pipe that only the first could empty or fill."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from scenes import EXECUTOR, MAIN, Stacks, actor, core, process, ray_state, snapshot

from ray_rl_debug.diagnose import diagnose
from ray_rl_debug.report import Cause, Certainty, State
from ray_rl_debug.snapshot import OpenFile, Snapshot

PARENT, CHILD = 100, 200


def grader(*, child_writes: bool = True, reader: float | None = None) -> Snapshot:
    """An actor that waits for its child, which writes to (or reads from) a pipe of theirs; beside it, maybe, a thread that reads."""
    stacks = Stacks()
    waits = f"Popen._try_wait@subprocess.py:2004 Popen.wait@subprocess.py:1264 Grader.check@app/grader.py:7 {EXECUTOR} {MAIN}"
    end = OpenFile(fd=3, path="pipe:[77]", kind="pipe", inode=77, writable=not child_writes)
    beside = [] if reader is None else [("drain", "drain@app/grader.py:3")]
    parent = process(stacks, PARENT, "ray::Grader.check", waits, syscall=61, wchan="do_wait", extra_threads=beside)
    parent = replace(parent, files=(end,))
    if reader is not None:
        parent = replace(parent, threads=(parent.threads[0], *(replace(t, state="R", wchan=None, cpu_s=reader) for t in parent.threads[1:])))
    call, at = (1, "pipe_write") if child_writes else (0, "pipe_read")
    mine = OpenFile(fd=1, path="pipe:[77]", kind="pipe", inode=77, writable=child_writes)
    child = process(stacks, CHILD, "python", "main@app/check.py:2", kind="child", ppid=PARENT, syscall=call, wchan=at)
    child = replace(child, files=(mine,), threads=(replace(child.threads[0], syscall_arg0=1), *child.threads[1:]))
    ray = ray_state(actors=[actor(0, "Grader", PARENT)], cores=[core(PARENT, running=[1], actor_number=0)])
    return snapshot(stacks.node([parent, child]), ray)


@pytest.mark.parametrize("child_writes", [True, False], ids=["a full pipe that nobody reads", "input that nobody sends"])
def test_parent_and_child_wait_for_each_other(child_writes: bool) -> None:
    report = diagnose(grader(child_writes=child_writes))
    (finding,) = (f for f in report.findings if f.root)
    assert (report.verdict.state, finding.id, finding.cause) == (State.HANG, "RRD502", Cause.BLOCKED_IO)
    assert {w.pid for w in finding.who} == {PARENT, CHILD}


def test_a_thread_that_reads_the_pipe_may_free_them() -> None:
    report = diagnose(grader(reader=1.9))
    assert report.verdict.state is not State.HANG
    assert all(f.certainty is Certainty.POSSIBLE for f in report.findings)
