"""Agent-Lightning's real store and runners: the stuck rollout and its runner are named, by doctor and snapshot; a good run is left alone."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from engines.processes import end, until
from frameworks import environments

from examples.ports import free_port
from ray_rl_debug.doctor.lightning import LEAST_S

pytestmark = [pytest.mark.frameworks, pytest.mark.engines, pytest.mark.integration, pytest.mark.timeout(1500)]
PROGRAM = Path(__file__).with_name("lightning_program.py")
START_S = 180.0


class Run(NamedTuple):
    """A trainer that runs, with its store."""

    pids: dict[str, int]
    store: str
    log: Path


@contextlib.contextmanager
def running(case: str, ended: int, folder: Path) -> Iterator[Run]:
    """A trainer of which so many rollouts have ended, and no more will."""
    python = environments.python(environments.LIGHTNING)
    port, log = free_port(), folder / "log"
    with log.open("wb") as out:
        command = [str(python), str(PROGRAM), str(port), case]
        child = subprocess.Popen(
            command, env=environments.environment(), cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
        )
    try:
        until(lambda: f"{ended} of 4 have ended" in log.read_text() or child.poll() is not None, START_S, f"{ended} rollouts have ended", every=0.2)
        assert child.poll() is None, log.read_text()[-2000:]
        words = [line.split() for line in log.read_text().splitlines()]
        yield Run({w[0]: int(w[1]) for w in words if w[:1] in (["tool"], ["trainer"])}, f"http://127.0.0.1:{port}", log)
    finally:
        end(child.pid)


def command(*arguments: str) -> dict[str, Any]:
    argv = [sys.executable, "-m", "ray_rl_debug", *arguments, "--json"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode in (0, 1), done.stderr
    return dict(json.loads(done.stdout))


def of(found: dict[str, Any], check: str) -> list[dict[str, Any]]:
    return [r for r in found["results"] if r["check"] == check]


def test_the_stuck_rollout_and_its_runner_are_named(tmp_path: Path) -> None:
    with running("hang", 3, tmp_path) as run:
        told = command("snapshot", "--pid", str(run.pids["trainer"]), "-q")
        assert told["verdict"]["state"] == "hang", told["verdict"]
        first = told["findings"][0]
        assert first["cause"] == "blocked-io"
        assert {w["pid"] for w in first["who"]} >= {run.pids["tool"]}
        assert any("Solver.ask_tool" in e["text"] for e in first["evidence"])
        held = [e["text"] for e in first["evidence"] if "the store says" in e["text"]]
        assert held and "holds rollout ro-" in held[0]

        deadline = time.monotonic() + LEAST_S + 60  # younger rollouts are nobody's fault
        while (stuck := of(command("doctor", "--agent-lightning", run.store), "agl.runner"))[0]["status"] != "fail":
            assert time.monotonic() < deadline, stuck
            time.sleep(2)
        assert "holds rollout ro-" in stuck[0]["measured"] and "no span of it has come in" in stuck[0]["measured"]
        assert held[0].split("holds rollout ")[1].split()[0] in stuck[0]["measured"]


def test_a_good_run_is_left_alone(tmp_path: Path) -> None:
    with running("ok", 4, tmp_path) as run:
        told = command("snapshot", "--pid", str(run.pids["trainer"]), "-q")
        assert told["verdict"]["state"] in ("healthy", "slow"), told["verdict"]
        assert [f for f in told["findings"] if f["certainty"] != "possible"] == []
        found = command("doctor", "--agent-lightning", run.store)
        assert [r for r in found["results"] if r["status"] == "fail"] == []
        assert "4 rollouts (4 succeeded)" in of(found, "agl.store")[0]["measured"]
