"""The demo on a real embedded cluster: two raylets, real collectives, a real silent server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration


def test_demo_names_the_true_culprit_and_leaves_nothing_behind(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ray_rl_debug", "demo", "--json", "-o", str(tmp_path / "out")],
        capture_output=True,
        text=True,
        timeout=150,
        env={**os.environ, "NO_COLOR": "1"},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    report = json.loads(done.stdout)
    root = report["findings"][0]
    assert (report["verdict"]["state"], root["cause"], root["root"]) == ("hang", "blocked-io", True)
    assert {w["label"] for w in root["who"]} <= {"tool_server", "PolicyTrainer/2"}, "one end of the call that gets no answer, or both"
    assert "PolicyTrainer/2" in report["verdict"]["summary"]
    assert {v["label"] for v in root["victims"]} >= {"PolicyTrainer/0", "PolicyTrainer/1", "task_runner"}
    assert [link["why"] for link in root["chain"]][-1] == "socket"
    assert len([n for n in report["nodes"] if n["answered"]]) == 2
    assert (tmp_path / "out" / "snapshot.json.gz").is_file()
    left = subprocess.run(["pgrep", "-f", "ray_rl_debug.demo.demo_job"], capture_output=True, text=True, check=False)
    assert left.stdout.strip() == ""
