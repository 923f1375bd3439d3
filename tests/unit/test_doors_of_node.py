"""Which ways into other processes are open: told by processes that live."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from ray_rl_debug.collect.permissions import find_doors


def zombie() -> subprocess.Popen[bytes]:
    """A child that has ended and that nobody has waited for."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    return child


def test_who_has_ended_tells_nothing() -> None:
    ended = zombie()
    try:
        doors = find_doors([ended.pid])
        assert (doors.memory, doors.environ, doors.setting) == (None, None, None)
        assert find_doors([ended.pid, os.getppid()]).memory == find_doors([os.getppid()]).memory
    finally:
        ended.wait()


def test_a_door_that_is_closed_says_why(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "mem").mkdir()  # opening it fails as a closed one does: with an error that is not about its end
    (tmp_path / "7" / "environ").write_bytes(b"A=1")
    doors = find_doors([7], tmp_path)
    assert (doors.memory, doors.environ) == (False, True)
    assert doors.setting is not None
