"""Questions at a terminal: who asks is named when somebody waits for it; a read from something else is another rule's."""

from __future__ import annotations

import os
import pty

import pytest
from msgspec.structs import replace
from scenes import ALL_REDUCE, EXECUTOR, MAIN, Stacks, process, snapshot

from ray_rl_debug.collect.files import FileReader
from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Report, State
from ray_rl_debug.model.snapshot import OpenFile

UPDATE = f"{ALL_REDUCE} Trainer.update@app/trainer.py:30 {EXECUTOR} {MAIN}"
SAVE = f"Trainer.save@app/trainer.py:20 {EXECUTOR} {MAIN}"
GETPASS = "_raw_input@getpass.py:146 unix_getpass@getpass.py:77"
TERMINAL = OpenFile(fd=0, path="/dev/pts/3", kind="device")
READ, SELECT = 0, 23
"""System calls of x86-64."""


def report(stack: str, *files: OpenFile, syscall: int = READ, fd: int = 0) -> Report:
    """Two ranks wait in all_reduce for one that sleeps in a system call at a descriptor."""
    stacks = Stacks()
    waiting = [process(stacks, 100 + i, "ray::Trainer.update", UPDATE, rank=i, size=3) for i in range(2)]
    wchan = "wait_woken" if syscall == READ else "do_select"
    asking = process(stacks, 102, "ray::Trainer.save", stack, rank=2, size=3, syscall=syscall, arg0=fd if syscall == READ else fd + 1, wchan=wchan)
    threads = tuple(replace(t, waits_on_fds=(fd,)) for t in asking.threads)
    return diagnose(snapshot(stacks.node([*waiting, replace(asking, files=files, threads=threads)])))


@pytest.mark.parametrize("path", ["/dev/pts/3", "/dev/tty", "/dev/ttyS0", "/dev/console"])
@pytest.mark.parametrize("stack", [SAVE, f"{GETPASS} {SAVE}"], ids=["input", "getpass"])
def test_a_rank_that_asks_is_named_with_its_terminal(path: str, stack: str) -> None:
    found = report(stack, replace(TERMINAL, path=path))
    finding = found.findings[0]
    assert (found.verdict.state, finding.id, [w.pid for w in finding.who]) == (State.HANG, "RRD509", [102])
    assert f"waits at {path} for a person" in finding.summary


def test_a_question_with_readline_sleeps_in_select() -> None:
    finding = report(SAVE, TERMINAL, syscall=SELECT).findings[0]
    assert (finding.id, [w.pid for w in finding.who]) == ("RRD509", [102])


def test_a_stack_alone_tells_of_a_password() -> None:
    stacks = Stacks()
    waiting = [process(stacks, 100 + i, "ray::Trainer.update", UPDATE, rank=i, size=3) for i in range(2)]
    asking = process(stacks, 102, "ray::Trainer.save", f"{GETPASS} {SAVE}", rank=2, size=3)
    found = diagnose(snapshot(stacks.node([replace(p, threads=()) for p in (*waiting, asking)])))
    assert (found.findings[0].id, [w.pid for w in found.findings[0].who]) == ("RRD509", [102])


@pytest.mark.parametrize(
    ("files", "fd"),
    [
        ((OpenFile(fd=0, path="pipe:[7]", kind="pipe", inode=7),), 0),  # a program should answer
        ((TERMINAL, OpenFile(fd=5, path="/dev/nvidia0", kind="device")), 5),  # reads from something else, and has a terminal
        ((OpenFile(fd=0, path="/dev/ptmx", kind="device"),), 0),  # the other end: it waits for the programs at the terminal
    ],
    ids=["a pipe", "another descriptor", "the other end"],
)
def test_what_only_looks_like_a_question(files: tuple[OpenFile, ...], fd: int) -> None:
    assert "RRD509" not in [f.id for f in report(SAVE, *files, fd=fd).findings]


def test_the_terminal_of_a_process_is_recorded() -> None:
    keyboard, terminal = pty.openpty()
    try:
        paths = {f.fd: f.path for f in FileReader().read(os.getpid()) or ()}
        assert paths[terminal] == os.ttyname(terminal)
    finally:
        os.close(keyboard)
        os.close(terminal)
