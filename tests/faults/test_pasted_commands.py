"""Commands that we print and people paste, with names in them that strangers chose."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from ray_rl_debug.collect.health.folders import read_temp
from ray_rl_debug.doctor.folders import stale_sessions
from ray_rl_debug.model.health import Folder, NodeHealth, Plan

HOSTILE = ("session_2; touch pwned", "session_2$(touch pwned)", "session_2`touch pwned`", "session_2 x", "session_2'\"&|")


def test_a_strangers_folder_is_no_session(tmp_path: Path) -> None:
    """Somebody has made folders in Ray's temporary folder whose names a shell would run, and a link of a session's name.
    They are not told as sessions to remove; those of Ray are."""
    for name in (*HOSTILE, "session_2026-11-21_00-02-50_368596_46"):
        (tmp_path / name).mkdir()
    (tmp_path / "session_2026-11-20_00-00-00_1_1").symlink_to("/")
    assert [Path(s).name for s in read_temp(tmp_path, ()).stale] == ["session_2026-11-21_00-02-50_368596_46"]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_printed_command_can_be_pasted(name: str) -> None:
    """A node that lies tells a session's folder whose name a shell would run.
    The command that the doctor prints names that folder as one word."""
    temp = Folder(path="/tmp/ray", owner="root", stale=(f"/tmp/ray/{name}",) * 50)
    (result,) = stale_sessions(NodeHealth(name="n1", taken_time_s=0.0, plan=Plan(), temp=temp))
    assert result.remedy is not None
    words = shlex.split(result.remedy.partition(" (and")[0])
    assert words == ["rm", "-rf", f"/tmp/ray/{name}"]
