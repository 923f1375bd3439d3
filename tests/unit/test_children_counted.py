"""How many children a process has: counted for a real one, and what a count tells of ends of pipes that nobody holds."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from subprocess import PIPE, Popen

import pytest
from msgspec.structs import replace
from scenes import MAIN, Stacks, process, snapshot

from ray_rl_debug.analyze.lost_ends import lacks_child
from ray_rl_debug.analyze.view import build_view
from ray_rl_debug.collect.procfs import count_children
from ray_rl_debug.model.snapshot import OpenFile, Process

STARTS = """
import subprocess, sys, threading
held = [subprocess.Popen(["sleep", "60"])]
thread = threading.Thread(target=lambda: held.append(subprocess.Popen(["true"])))
thread.start()
thread.join()
print(flush=True)
sys.stdin.readline()
held[0].kill()
"""
PARENT, CHILD, BELOW = 100, 200, 300


def test_children_of_all_threads_are_counted_and_dead_ones_too() -> None:
    with Popen([sys.executable, "-c", STARTS], stdin=PIPE, stdout=PIPE) as started:
        assert started.stdout is not None
        started.stdout.readline()
        assert count_children(started.pid) == 2
        started.communicate(b"\n")


def test_a_process_without_children_has_none() -> None:
    with Popen(["sleep", "60"]) as started:
        assert count_children(started.pid) == 0
        started.kill()


def test_a_kernel_that_does_not_tell_and_a_process_that_is_gone_count_nothing(tmp_path: Path) -> None:
    (tmp_path / "7" / "task" / "7").mkdir(parents=True)
    assert count_children(7, tmp_path) is None
    assert count_children(8, tmp_path) is None
    assert count_children(os.getpid()) is not None


def parent(stacks: Stacks, count: int | None) -> Process:
    """It has kept ends of two pipes whose other ends nobody holds."""
    lost = [OpenFile(fd=5 + i, path=f"pipe:[{i}]", kind="pipe", inode=70 + i, writable=bool(i)) for i in range(2)]
    return replace(process(stacks, PARENT, "python train.py", MAIN, kind="named"), files=tuple(lost), child_count=count)


def child(stacks: Stacks, pid: int, ppid: int, count: int | None) -> Process:
    return replace(process(stacks, pid, "python train.py", MAIN, kind="child", ppid=ppid), files=(), child_count=count)


@pytest.mark.parametrize(
    ("counted", "below", "found"),
    [(1, 1, False), (None, 1, True), (2, 1, True), (1, None, True), (1, 2, True)],
    ids=["all were seen", "not counted", "one was not seen", "not counted below", "one below was not seen"],
)
def test_lost_ends_were_of_the_dead_where_all_children_were_seen(counted: int | None, below: int | None, found: bool) -> None:
    stacks = Stacks()
    family = [parent(stacks, counted), child(stacks, CHILD, PARENT, below), child(stacks, BELOW, CHILD, 0)]
    view = build_view(snapshot(stacks.node(family)))
    assert lacks_child(view, view.seen[f"node1/{PARENT}"]) is found
