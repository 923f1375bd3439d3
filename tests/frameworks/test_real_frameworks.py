"""The command against the real verl worker group and AReaL's workflow executor: healthy, hung in a known place, and going on again."""

from __future__ import annotations

import contextlib
import json
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from frameworks import environments
from integration.clusters import command

pytestmark = [pytest.mark.frameworks, pytest.mark.integration, pytest.mark.timeout(1500)]
HERE = Path(__file__).parent
START_S = 240.0
"""Each rank imports verl and transformers, on few cores one after another."""
REACH_S = 60.0


class Running:
    """A program, its folder, and the words that make it go wrong."""

    def __init__(self, folder: Path, child: subprocess.Popen[str], announced: dict[str, Any]) -> None:
        self.folder, self.child, self.announced = folder, child, announced

    def await_step(self, more: int = 2) -> dict[str, Any]:
        """Waits until the run has made so many steps more, and gives what the program says of itself."""
        first = self._step()["step"]
        self._await(lambda: self._step()["step"] >= first + more, START_S, "no step")
        return self._step()

    def make(self, trouble: str) -> None:
        """Waits until the trouble is there."""
        (self.folder / "reached").unlink(missing_ok=True)
        part = self.folder / "trouble.part"
        part.write_text(trouble)
        part.rename(self.folder / "trouble")
        self._await((self.folder / "reached").exists, REACH_S, f"{trouble} was never reached")

    def release(self) -> None:
        (self.folder / "trouble").unlink()

    def _step(self) -> dict[str, Any]:
        file = self.folder / "step"
        return dict(json.loads(file.read_text())) if file.exists() else {"step": 0}

    def _await(self, condition: Any, seconds: float, what: str) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert self.child.poll() is None, f"the program ended: {(self.folder / 'errors').read_text()[-2000:]}"
            assert time.monotonic() < deadline, what
            time.sleep(0.1)


@contextlib.contextmanager
def running(program: str) -> Iterator[Running]:
    python = environments.python()
    with tempfile.TemporaryDirectory(prefix="rrd", dir="/tmp") as name, (Path(name) / "errors").open("w") as errors:
        child = subprocess.Popen(
            [str(python), str(HERE / program), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=environments.environment(),
        )
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            line = next((text for text in child.stdout if text.startswith("{")), None)
            assert line is not None, (Path(name) / "errors").read_text()[-3000:]
            yield Running(Path(name), child, json.loads(line))
        finally:
            child.stdin.close()
            try:
                child.wait(30)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait(10)
            child.stdout.close()


def snapshot(*arguments: object, interval_s: float = 1.0) -> dict[str, Any]:
    done = command("snapshot", *arguments, "--json", "--samples", 3, "--interval", interval_s)
    assert done.returncode in (0, 1, 3), done.stderr[-2000:]
    return dict(json.loads(done.stdout))


def told(report: dict[str, Any]) -> tuple[str, list[tuple[str, str | None, list[int | None]]]]:
    """State, and cause, phase and accused of every finding that claims something."""
    sure = [f for f in report["findings"] if f["certainty"] != "possible"]
    return report["verdict"]["state"], [(f["cause"], f["phase"], [w["pid"] for w in f["who"]]) for f in sure]


def test_verls_worker_group() -> None:
    with running("verl_program.py") as verl:
        address = verl.announced["address"]
        ranks = verl.await_step(3)["ranks"]
        report = snapshot("--address", address)
        assert told(report) == ("healthy", []), report["verdict"]["summary"]

        verl.make("reward")
        report = snapshot("--address", address, interval_s=3.0)
        assert told(report) == ("hang", [("straggler", "reward", [ranks[2]])]), report["verdict"]["summary"]
        assert "canonical_form" in json.dumps(report["findings"][0]["evidence"])
        assert {v["pid"] for v in report["findings"][0]["victims"]} >= {ranks[0], ranks[1]}

        verl.release()
        verl.await_step(3)
        report = snapshot("--address", address)
        assert told(report) == ("healthy", []), report["verdict"]["summary"]

        verl.make("update")
        report = snapshot("--address", address)
        state, findings = told(report)
        assert (state, [(phase, who) for _, phase, who in findings]) == ("hang", [("update", [ranks[1]])]), report["verdict"]["summary"]


@pytest.mark.parametrize(("trouble", "cause"), [("version", "staleness-gate"), ("tool", "event-loop-blocked")])
def test_areals_workflow_executor(trouble: str, cause: str) -> None:
    with running("areal_program.py") as areal:
        pid = areal.announced["pid"]
        areal.await_step(3)
        assert told(snapshot("--here", "--pid", pid))[1] == []

        areal.make(trouble)
        report = snapshot("--here", "--pid", pid)
        assert told(report) == ("hang", [(cause, "rollout", [pid])]), report["verdict"]["summary"]
