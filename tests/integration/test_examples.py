"""Every program of ``examples/`` run for real, one after another, and the command's report compared with the truth."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from integration.examples_truth import EVERY_RUN, TABLE, Row

pytestmark = pytest.mark.integration
pytest.importorskip("torch")

LAB = Path(__file__).resolve().parents[2] / "examples" / "hang_lab.py"
Start = Callable[[str], tuple[subprocess.Popen[str], dict[str, Any]]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a scenario and returns when its hang is reached; ends it after the test."""
    running: list[subprocess.Popen[str]] = []

    def start_one(name: str) -> tuple[subprocess.Popen[str], dict[str, Any]]:
        log = tmp_path / "lab.log"
        with log.open("wb") as errors:
            lab = subprocess.Popen(
                [sys.executable, str(LAB), "run", name, "--hold", "170"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        running.append(lab)
        assert lab.stdout is not None
        line = lab.stdout.readline()
        assert line, log.read_text(errors="replace")[-2000:]
        announced = json.loads(line)
        assert "error" not in announced, log.read_text(errors="replace")[-2000:]
        return lab, announced

    yield start_one
    for lab in running:
        release(lab)


def release(lab: subprocess.Popen[str]) -> None:
    assert lab.stdin is not None
    assert lab.stdout is not None
    lab.stdin.close()
    lab.wait(30)
    lab.stdout.close()


def listed() -> dict[str, Any]:
    done = subprocess.run([sys.executable, str(LAB), "list", "--json"], capture_output=True, text=True, check=True, timeout=60)
    return dict(json.loads(done.stdout))


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
    assert said(report, announced, row) == row, report["verdict"]["summary"]


def said(report: dict[str, Any], announced: dict[str, Any], row: Row) -> Row:
    """What the report says in the table's words: the row itself where it is right."""
    state = report["verdict"]["state"]
    roots = [f for f in report["findings"] if f["root"]]
    if row.who == "-":
        roots = [f for f in roots if f["certainty"] != "possible"]
    names = {pid: name for name, pid in announced["pids"].items()}
    accused = [(names.get(w["pid"], ""), w["label"]) for w in roots[0]["who"]] if roots else []
    cause = roots[0]["cause"] if roots else "-"
    victims = set(announced["truth"]["victims"])
    right = not any(name in victims for name, _ in accused) and (
        bool(roots) == (row.state == "hang") if row.who == "-" else any(is_one_of(row.who, name, label) for name, label in accused)
    )
    return Row(
        scenario=row.scenario,
        state=row.state if state in row.state.split("|") else state,
        who=row.who if right else "|".join(name or label for name, label in accused) or "nobody",
        cause=row.cause if cause in row.cause.split("|") else cause,
    )


def is_one_of(who: str, name: str, label: str) -> bool:
    return any(wanted[6:] in label if wanted.startswith("label:") else wanted == name for wanted in who.split("|"))


def test_a_released_program_leaves_nothing_behind(start: Start) -> None:
    lab, announced = start("locks_in_opposite_order")
    started = psutil.Process(lab.pid).children(recursive=True)
    assert len(started) > 3
    release(lab)
    assert lab.returncode == 0
    _, alive = psutil.wait_procs(started, timeout=10)
    assert [p.pid for p in alive if p.status() != psutil.STATUS_ZOMBIE] == []
    assert announced["truth"]["cause"] == "lock-deadlock"
