"""The whole trainer of verl (TaskRunnerV1, FSDP2 on gloo, TransferQueue, agent loop, reward loop) on CPUs; only the engine makes its tokens up.

Some minutes: run it with ``-m trainer``.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from frameworks import environments, trainer_run
from frameworks.test_real_frameworks import snapshot
from frameworks.trainer_run import TRAINER, Run

pytestmark = [pytest.mark.trainer, pytest.mark.frameworks, pytest.mark.timeout(2400)]


@pytest.fixture(scope="module")
def run() -> Iterator[Run]:
    python = environments.python()
    with tempfile.TemporaryDirectory(prefix="rrt", dir="/tmp", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        plain = environments.environment()
        subprocess.run([str(python), str(TRAINER / "assets.py"), name], env=plain, check=True, timeout=300)
        found = trainer_run.start(folder, python, {**plain, **trainer_run.variables(folder)}, folder / "model")
        try:
            found.await_steps()
            yield found
        finally:
            found.end()


def accused(report: dict[str, Any]) -> tuple[str, list[tuple[str | None, list[str], list[int | None]]]]:
    sure = [f for f in report["findings"] if f["certainty"] != "possible"]
    return report["verdict"]["state"], [(f["phase"], [w["actor"] or w["label"] for w in f["who"]], [w["pid"] for w in f["who"]]) for f in sure]


def test_a_run_that_trains(run: Run) -> None:
    state, found = accused(snapshot("--address", run.address()))
    assert (state != "hang", found) == (True, [])


def test_a_server_that_gives_no_answer(run: Run) -> None:
    run.make("generate", "ray::vLLMHttpServer.generate")
    report = snapshot("--address", run.address())
    state, found = accused(report)
    assert (state, [(phase, who) for phase, who, _ in found[:1]]) == ("hang", [("rollout", ["vllm_server_0_0"])]), json.dumps(report["verdict"])
    run.release()
    run.await_steps(1, 180)
    assert accused(snapshot("--address", run.address()))[0] != "hang"


def test_a_rank_that_waits_in_its_optimizer(run: Run) -> None:
    run.make("step", "ray::WorkerDict.actor_rollout_update_actor")
    rank = next(p.pid for p in run.titled("ray::WorkerDict.actor_rollout_update_actor") if p.environ().get("RANK") == "1")
    report = snapshot("--address", run.address())
    state, found = accused(report)
    assert (state, [(phase, pids) for phase, _, pids in found[:1]]) == ("hang", [("update", [rank])]), json.dumps(report["verdict"])
    run.release()
    run.await_steps(1, 180)
    assert accused(snapshot("--address", run.address()))[0] != "hang"
