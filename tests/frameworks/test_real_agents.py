"""``rollout try`` with the real client of OpenAI, AReaL's own workflow and verl's own agent loop."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from frameworks import environments

pytestmark = [pytest.mark.frameworks, pytest.mark.integration, pytest.mark.timeout(1500)]
AGENTS = Path(__file__).with_name("real_agents.py")


def trial(target: str, *options: str, code: int) -> dict[str, Any]:
    target = target if ":" in target else f"{AGENTS}:{target}"
    argv = [
        sys.executable,
        "-m",
        "ray_rl_debug",
        "rollout",
        "try",
        target,
        "--python",
        str(environments.python()),
        "--json",
        "-q",
        "--batch-size",
        "4",
    ]
    done = subprocess.run([*argv, *options], capture_output=True, text=True, timeout=300, check=False, env=environments.environment())
    assert done.returncode == code, done.stdout[-3000:] + done.stderr
    return dict(json.loads(done.stdout))


def failures(found: dict[str, Any]) -> dict[str, str]:
    said: dict[str, str] = {}
    for result in found["results"]:
        if result["status"] == "fail":
            said[result["check"]] = said.get(result["check"], "") + result["measured"] + "\n"
    return said


@pytest.mark.parametrize("agent", ["ToolAgent", "StreamingAgent"])
def test_a_good_agent(agent: str) -> None:
    found = trial(agent, code=0)
    assert failures(found) == {}
    assert {e["reward"] for e in found["facts"]["episodes"]} == {1.0}


def test_a_tool_that_blocks_the_loop() -> None:
    found = trial("BlockingTool", "--batch-size", "2", "--rounds", "1", code=1)
    assert list(failures(found)) == ["try.loop"]
    assert "run_sandbox" in failures(found)["try.loop"]


def test_a_client_for_each_episode_that_is_never_closed() -> None:
    found = trial("LeakingClient", code=1)
    assert "connections after 3 equal rounds: 37 → 53 → 69" in failures(found)["try.leak"]


def test_a_tool_that_never_answers() -> None:
    found = trial("SilentTool", "--timeout", "6", code=1)
    assert "SilentTool.calculate" in failures(found)["try.stuck"]
    assert "RRD201" in failures(found)["try.stuck"]


def test_a_semaphore_that_is_too_small() -> None:
    found = trial("SmallSemaphore", "--rounds", "1", code=1)
    assert "a semaphore that lets 2 in at SmallSemaphore.run" in failures(found)["try.limit"]


def test_areals_own_workflow() -> None:
    found = trial("areal_workflow", "--timeout", "120", code=0)
    assert found["facts"]["contract"] == "areal-workflow"
    assert {e["reward"] for e in found["facts"]["episodes"]} == {16.0}


def test_areals_staleness_formula() -> None:
    """Our numbers against AReaL's own manager."""
    program = """
import json
from areal.infra.staleness_manager import StalenessManager
class Version:
    def get_version(self): return 1
out = []
for concurrent, consumer, staleness in [(8, 4, 0), (3, 4, 2), (64, 16, 1)]:
    for accepted, running in [(0, 0), (4, 2), (8, 0), (40, 3)]:
        manager = StalenessManager(Version(), concurrent, consumer, staleness)
        manager.rollout_stat.accepted, manager.rollout_stat.running = accepted, running
        out.append([concurrent, consumer, staleness, accepted, running, manager.get_capacity()])
print(json.dumps(out))
"""
    from ray_rl_debug.model.trial import Gate
    from ray_rl_debug.trial.judge.gate import capacity

    argv = [str(environments.python()), "-c", program]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=True, env=environments.environment())
    for concurrent, consumer, staleness, accepted, running, theirs in json.loads(done.stdout.splitlines()[-1]):
        gate = Gate(batch_size=8, max_concurrent=concurrent, consumer_batch_size=consumer, max_offpolicyness=staleness, version=1)
        assert capacity(gate, accepted=accepted, running=running) == theirs


def test_verls_own_agent_loop() -> None:
    found = trial("verl.experimental.agent_loop.single_turn_agent_loop:SingleTurnAgentLoop", "--timeout", "120", code=0)
    assert found["facts"]["contract"] == "verl-agent-loop"
    assert failures(found) == {}
