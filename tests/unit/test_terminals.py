"""Terminals that a program has opened for another: whose they are, and that both may wait for the other's text."""

from __future__ import annotations

import os
import pty
from pathlib import Path

import pytest
from msgspec.structs import replace
from scenes import Stacks, process, snapshot

from ray_rl_debug.collect.files import FileReader
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import State
from ray_rl_debug.model.snapshot import OpenFile

READ = 0
MASTER = OpenFile(fd=3, path="/dev/ptmx", kind="device", writable=True, terminal=5)
END = OpenFile(fd=0, path="/dev/pts/5", kind="device", writable=True, terminal=5)


def test_both_ends_of_a_terminal_have_its_number() -> None:
    ours, theirs = pty.openpty()
    try:
        files = {f.fd: f for f in FileReader().read(os.getpid()) or ()}
        number = int(os.readlink(f"/proc/self/fd/{theirs}").rpartition("/")[2])
        assert files[ours].terminal == files[theirs].terminal == number
    finally:
        os.close(ours)
        os.close(theirs)


def test_what_is_no_terminal_has_none(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w") as file:
        assert {f.fd: f.terminal for f in FileReader().read(os.getpid()) or ()}[file.fileno()] is None


@pytest.mark.parametrize(
    ("end", "wchan", "syscall", "named"),
    [
        (END, "wait_woken", READ, {10, 20}),  # it asks, and the tool reads on
        (END, "hrtimer_nanosleep", 230, None),
        (replace(END, terminal=6, path="/dev/pts/6"), "wait_woken", READ, None),  # another terminal
    ],
)
def test_a_tool_and_its_command_read_at_one_terminal(end: OpenFile, wchan: str, syscall: int, named: set[int] | None) -> None:
    stacks = Stacks()
    tool = process(stacks, 10, "python tool.py", "run@/job/tool.py:43", kind="named", ppid=1, wchan="n_tty_read", syscall=READ, arg0=3)
    command = process(stacks, 20, "python c.py", "command@/job/c.py:23", kind="child", ppid=10, wchan=wchan, syscall=syscall, arg0=0)
    report = diagnose(snapshot(stacks.node([replace(tool, files=(MASTER,)), replace(command, files=(end,))])))
    assert (report.verdict.state is State.HANG) is (named is not None)
    assert named is None or {w.pid for w in report.findings[0].who} == named
