"""Every program of ``examples/`` run for real, one after another, and the command's report compared with the truth."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil
import pytest
from lab_runs import listed, release
from lab_runs import start as start_lab
from peers import answer_of_report
from scoring import judge
from truth import EVERY_RUN, TABLE, Row

pytestmark = [pytest.mark.integration, pytest.mark.skipif(find_spec("torch") is None, reason="needs torch")]

Start = Callable[[str], tuple[subprocess.Popen[str], dict[str, Any]]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a scenario and returns when its hang is reached; ends it after the test."""
    running: list[subprocess.Popen[str]] = []

    def start_one(name: str) -> tuple[subprocess.Popen[str], dict[str, Any]]:
        lab, announced = start_lab(name, tmp_path / "lab.log")
        running.append(lab)
        return lab, announced

    yield start_one
    for lab in running:
        release(lab)


def test_the_table_and_the_programs_say_the_same() -> None:
    programs = {}
    for name, entry in listed().items():
        truth = entry["truth"]
        programs[name] = (truth["state"], "|".join(truth["culprits"]) or "-", truth["cause"] or "-")
    assert programs == {row.scenario: (row.state, row.who, row.cause) for row in TABLE}


ROWS = [pytest.param(row, id=row.scenario, marks=() if row.scenario in EVERY_RUN else pytest.mark.slow) for row in TABLE]


@pytest.mark.parametrize("row", ROWS)
def test_report_of(row: Row, start: Start) -> None:
    _, announced = start(row.scenario)
    command = [sys.executable, "-m", "ray_rl_debug", "snapshot", "--address", announced["gcs_address"]]
    done = subprocess.run(
        [*command, "--json", "--samples", "3", "--interval", "1"],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
        env={**os.environ, "RAY_AUTH_MODE": "disabled"},
    )
    assert done.returncode in (0, 1, 3), done.stderr[-2000:]
    report = json.loads(done.stdout)
    score = judge(row, answer_of_report(report), announced["pids"], announced["truth"]["victims"])
    assert (score.who, score.state, score.cause) == ("right", True, None if row.cause == "-" else True), (score.said, report["verdict"]["summary"])


def test_a_released_program_leaves_nothing_behind(start: Start) -> None:
    lab, announced = start("locks_in_opposite_order")
    started = psutil.Process(lab.pid).children(recursive=True)
    assert len(started) > 3
    release(lab)
    assert lab.returncode == 0
    _, alive = psutil.wait_procs(started, timeout=10)
    assert [p.pid for p in alive if p.status() != psutil.STATUS_ZOMBIE] == []
    assert announced["truth"]["cause"] == "lock-deadlock"
