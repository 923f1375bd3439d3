"""Terminals that take no output: who prints there is named; a write to something else is another rule's."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from scenes import ALL_REDUCE, EXECUTOR, MAIN, Stacks, process, snapshot

from ray_rl_debug.diagnosis.diagnose import diagnose
from ray_rl_debug.model.report import Certainty, Report, State
from ray_rl_debug.model.snapshot import OpenFile, Process

UPDATE = f"{ALL_REDUCE} Trainer.update@app/trainer.py:30 {EXECUTOR} {MAIN}"
PRINT = f"Trainer.log@app/trainer.py:20 {EXECUTOR} {MAIN}"
TERMINAL = OpenFile(fd=1, path="/dev/pts/3", kind="device", writable=True, terminal=3)
WRITE = 1
"""System call of x86-64."""


def printing(stacks: Stacks, *texts: str, files: tuple[OpenFile, ...] = (TERMINAL,), kind: str = "ray-worker") -> Process:
    """A process that sleeps in a write to its standard output."""
    one = process(stacks, 102, "ray::Trainer.log", *texts, rank=2, size=3, syscall=WRITE, arg0=1, wchan="wait_woken", kind=kind)
    return replace(one, files=files)


def report(*texts: str, files: tuple[OpenFile, ...] = (TERMINAL,)) -> Report:
    """Two ranks wait in all_reduce for one that prints."""
    stacks = Stacks()
    waiting = [process(stacks, 100 + i, "ray::Trainer.update", UPDATE, rank=i, size=3) for i in range(2)]
    return diagnose(snapshot(stacks.node([*waiting, printing(stacks, *texts, files=files)])))


@pytest.mark.parametrize("path", ["/dev/pts/3", "/dev/ttyS0", "/dev/console"])
def test_a_rank_that_prints_is_named_with_its_terminal(path: str) -> None:
    found = report(PRINT, files=(replace(TERMINAL, path=path),))
    finding = found.findings[0]
    assert (found.verdict.state, finding.id, [w.pid for w in finding.who]) == (State.HANG, "RRD511", [102])
    assert f"prints to {path}" in finding.summary


@pytest.mark.parametrize(
    ("texts", "files"),
    [
        ((PRINT,), (replace(TERMINAL, path="/srv/job.log", kind="file", terminal=None),)),
        ((PRINT,), (replace(TERMINAL, fd=2),)),
        ((PRINT, f"step@app/model.py:9 {PRINT}", PRINT), (TERMINAL,)),
    ],
    ids=["a file", "another descriptor", "a terminal that is slow"],
)
def test_what_only_looks_like_a_full_terminal(texts: tuple[str, ...], files: tuple[OpenFile, ...]) -> None:
    assert [f.id for f in report(*texts, files=files).findings if f.id == "RRD511"] == []


@pytest.mark.parametrize("kind", ["named", "driver"])
def test_nobody_waits_for_who_was_named_or_for_a_driver(kind: str) -> None:
    """A driver at Ctrl-S is no run at rest, though its actors are idle."""
    stacks = Stacks()
    found = diagnose(snapshot(stacks.node([replace(printing(stacks, PRINT, kind=kind), env={}, env_now={})])))
    assert [(f.id, f.certainty) for f in found.findings] == [("RRD511", Certainty.POSSIBLE)]
    assert found.verdict.state is State.UNKNOWN


def test_a_program_of_the_terminal_that_was_seen_is_the_one_to_look_at() -> None:
    stacks = Stacks()
    shows = process(stacks, 50, "python expect.py", f"shows@app/expect.py:5 {MAIN}", kind="named", state="T")
    shows = replace(shows, files=(OpenFile(fd=7, path="/dev/ptmx", kind="device", writable=True, terminal=3),))
    waiting = [process(stacks, 100 + i, "ray::Trainer.update", UPDATE, rank=i, size=3) for i in range(2)]
    found = diagnose(snapshot(stacks.node([*waiting, printing(stacks, PRINT), shows])))
    assert (found.findings[0].id, [w.pid for w in found.findings[0].who]) == ("RRD501", [50])
