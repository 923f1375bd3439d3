"""Programs that a dead process has left behind with one end of what a process of the job reads."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from ray_rl_debug.collect.discover import discover
from ray_rl_debug.collect.options import CollectOptions

LEAVES = "import subprocess, sys; print(subprocess.Popen(['sleep', '60'], pass_fds=[int(sys.argv[1])], stdout=-3, stderr=-3).pid)"


@pytest.fixture(params=["pair of sockets", "pipe"])
def ends(request: pytest.FixtureRequest) -> Iterator[tuple[int, int]]:
    """Ours, and the one that is given away."""
    if request.param == "pipe":
        ours, theirs = os.pipe()
    else:
        ours, theirs = (s.detach() for s in socket.socketpair())
    yield ours, theirs
    os.close(ours)


def test_whoever_holds_the_other_end_is_found(ends: tuple[int, int]) -> None:
    _, theirs = ends
    done = subprocess.run([sys.executable, "-c", LEAVES, str(theirs)], pass_fds=[theirs], capture_output=True, text=True, check=True)
    os.close(theirs)
    left = int(done.stdout)
    try:
        found = {f.pid: f.kind for f in discover(CollectOptions(pids=(os.getpid(),))).found}
        assert found.get(left) == "child"
    finally:
        os.kill(left, 9)


def test_one_that_holds_nothing_of_ours_is_not(ends: tuple[int, int]) -> None:
    _, theirs = ends
    leaves = LEAVES.replace("pass_fds=[int(sys.argv[1])], ", "")
    done = subprocess.run([sys.executable, "-c", leaves, str(theirs)], pass_fds=[theirs], capture_output=True, text=True, check=True)
    os.close(theirs)
    left = int(done.stdout)
    try:
        assert left not in {f.pid for f in discover(CollectOptions(pids=(os.getpid(),))).found}
    finally:
        os.kill(left, 9)
