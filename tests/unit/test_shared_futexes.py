"""Threads that wait at a futex in memory that processes share, and whom they wait for."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from scenes import Stacks, process, snapshot

from ray_rl_debug.collect.shared_futexes import read_shared_futexes
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import State
from ray_rl_debug.model.snapshot import Process, Snapshot

MAPS = """\
7f00-7f80 rw-p 00000000 00:00 0
8000-9000 rw-s 00000000 00:01 1025 /dev/zero (deleted)
"""
FUTEX, SLEEP = 202, 230


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (f"{FUTEX} 0x8010 0x0 0x2 0x0 0x0 0x0 0x7ffe 0x7f12", True),
        (f"{FUTEX} 0x8010 0x80 0x2 0x0 0x0 0x0 0x7ffe 0x7f12", False),
        (f"{FUTEX} 0x7f10 0x0 0x2 0x0 0x0 0x0 0x7ffe 0x7f12", False),
        (f"{SLEEP} 0x1 0x0 0x8010 0x0 0x0 0x0 0x7ffe 0x7f12", None),
        ("running", None),
    ],
    ids=["shared", "said to be private", "a thread of its own is joined", "no futex", "it runs"],
)
def test_the_operation_and_the_map_tell(tmp_path: Path, call: str, told: bool | None) -> None:
    task = tmp_path / "7" / "task" / "7"
    task.mkdir(parents=True)
    (task / "syscall").write_text(call)
    (tmp_path / "7" / "maps").write_text(MAPS)
    assert read_shared_futexes(7, [7], tmp_path, machine="x86_64").get(7) is told


def waits(one: Process, in_shared: bool | None) -> Process:
    return replace(one, threads=tuple(replace(t, in_shared=in_shared) for t in one.threads))


def cores(last: str, call: int, wchan: str, in_shared: bool | None = True) -> Snapshot:
    """A program that waits for the first of its three children, two of which wait in C for the third."""
    stacks = Stacks()
    main = process(stacks, 100, "python simulate.py", "main@app/simulate.py:50", kind="named", syscall=61, arg0=101, wchan="do_wait")
    at = {"kind": "child", "ppid": 100}
    two = [process(stacks, n, "python simulate.py", "core@app/simulate.py:29", syscall=FUTEX, wchan="futex_do_wait", **at) for n in (101, 102)]
    third = process(stacks, 103, "python simulate.py", last, syscall=call, wchan=wchan, **at)
    third = replace(
        third,
        threads=tuple(replace(t, in_shared=False if call == FUTEX else None, wakes_in_s=20.0 if call == SLEEP else None) for t in third.threads),
    )
    return snapshot(stacks.node([main, waits(two[0], in_shared), waits(two[1], True), third]))


def test_who_has_not_come_is_named() -> None:
    report = diagnose(cores("core@app/simulate.py:26", FUTEX, "futex_do_wait"))
    assert (report.verdict.state, [w.pid for w in report.findings[0].who]) == (State.HANG, [103])


@pytest.mark.parametrize("in_shared", [True, None])
def test_who_comes_later_is_not_accused(in_shared: bool | None) -> None:
    report = diagnose(cores("core@app/simulate.py:27", SLEEP, "hrtimer_nanosleep", in_shared))
    assert report.verdict.state in (State.SLOW, State.UNKNOWN)
    assert all(f.certainty == "possible" for f in report.findings)
