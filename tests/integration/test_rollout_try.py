"""``rollout try`` with real programs: each agent runs in its own process, and what is wrong with it is named."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.integration
AGENTS = Path(__file__).with_name("agents_on_trial.py")
COMMAND = [sys.executable, "-m", "ray_rl_debug", "rollout", "try"]


def trial(agent: str, *options: str, code: int) -> dict[str, Any]:
    """The document of one trial, which ends with this exit code."""
    argv = [*COMMAND, f"{AGENTS}:{agent}", "--json", "-q", "--batch-size", "4", *options]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == code, done.stdout[-3000:] + done.stderr
    return dict(json.loads(done.stdout))


def failures(found: dict[str, Any]) -> dict[str, str]:
    """What fails, by check."""
    said: dict[str, str] = {}
    for result in found["results"]:
        if result["status"] == "fail":
            said[result["check"]] = said.get(result["check"], "") + result["measured"] + "\n"
    return said


def test_a_good_agent_is_left_alone() -> None:
    found = trial("Good", code=0)
    assert failures(found) == {}
    assert found["facts"]["contract"] == "areal-agent"
    assert all(e["reward"] == 17.0 for e in found["facts"]["episodes"])
    assert [s["engine_peak"] for s in found["facts"]["stages"]] == [1, 4, 8, 16, 16, 16]
    assert [(r["name"], r["done"]) for r in found["figures"]] == [("alone", 1), ("group", 4), ("level", 16), *[("batch", 16)] * 3]


def test_one_that_blocks_the_loop() -> None:
    found = trial("BlocksLoop", "--rounds", "1", "--batch-size", "2", code=1)
    assert list(failures(found)) == ["try.loop"]
    assert "BlocksLoop.run_code" in failures(found)["try.loop"] and "it waited" in failures(found)["try.loop"]
    longest = max(b["for_s"] for b in found["facts"]["blocked"])
    assert 0.9 < longest < 4.0
    best = max(r["per_s"] for r in found["figures"] if r["name"] == "batch")
    assert best < 1 / 1.2


def test_one_whose_calls_are_short() -> None:
    found = trial("WaitsShortly", "--rounds", "1", code=1)
    assert list(failures(found)) == ["try.loop"]
    assert "at WaitsShortly.look_up" in failures(found)["try.loop"] and "in many short waits" in failures(found)["try.loop"]


def test_one_that_leaks_connections() -> None:
    found = trial("LeaksConnections", code=1)
    assert list(failures(found)) == ["try.leak"]
    assert failures(found)["try.leak"].startswith("connections after 3 equal rounds: 37 → 53 → 69, 1 per episode; 69 of them to 127.0.0.1:")


def test_one_that_leaks_tasks() -> None:
    found = trial("LeaksTasks", code=1)
    assert list(failures(found)) == ["try.leak"]
    assert "asyncio tasks after 3 equal rounds: 37 → 53 → 69" in failures(found)["try.leak"]
    assert "69 of them at LeaksTasks.watch" in failures(found)["try.leak"]


def test_one_whose_tool_never_answers() -> None:
    found = trial("SilentTool", "--timeout", "4", code=1)
    stuck = [r["measured"] for r in found["results"] if r["check"] == "try.stuck"]
    assert "1 of 1 episodes that began at concurrency 1 did not end in 4 s" in stuck[0]
    assert "SilentTool.call_tool" in stuck[0] and "an answer over the network" in stuck[0]
    assert len(stuck) > 1, found
    assert stuck[1].startswith("RRD201") and "127.0.0.1:" in stuck[1]
    assert found["facts"]["gone_on_cancel"] is True
    assert [f.split(" ")[0] for f in found["facts"]["stuck"][0]["chain"]][:2] == ["SilentTool.run", "SilentTool.call_tool"]


def test_one_whose_semaphore_is_too_small() -> None:
    found = trial("SmallSemaphore", "--latency", "0.3", "--rounds", "1", code=1)
    assert list(failures(found)) == ["try.limit"]
    assert "a semaphore that lets 2 in at SmallSemaphore.run" in failures(found)["try.limit"]
    assert "the engine had at most 2 requests at once" in failures(found)["try.limit"]


def test_a_semaphore_that_is_large_enough_is_not_accused() -> None:
    assert failures(trial("SmallSemaphore", "--init", '{"permits": 64}', "--rounds", "1", code=0)) == {}


def test_one_that_deadlocks_on_its_semaphore_under_load_only() -> None:
    found = trial("TakesSemaphoreTwice", "--timeout", "4", code=1)
    assert "concurrency 4" in failures(found)["try.stuck"]
    assert "wait for each other" in failures(found)["try.stuck"]
    assert [s["took_s"] is not None for s in found["facts"]["stages"]] == [True, False]


def test_exceptions_are_counted_together() -> None:
    found = trial("Raises", "--rounds", "1", code=1)
    assert list(failures(found)) == ["try.errors"]
    assert failures(found)["try.errors"].startswith("37 of 37 episodes raised KeyError")
    assert "also alone" in failures(found)["try.errors"] and "run (" in failures(found)["try.errors"]


def test_failures_of_the_engine_reach_the_agent() -> None:
    found = trial("Good", "--failures", "0.5", "--rounds", "1", code=1)
    assert "RuntimeError: the engine said 500" in failures(found)["try.errors"]


def test_stalls_of_the_engine_leave_episodes() -> None:
    found = trial("Good", "--stalls", "1", "--timeout", "3", code=1)
    assert "Good.run" in found["facts"]["stuck"][0]["chain"][0]
    assert found["facts"]["counters"]["stalled"] == 1


@pytest.mark.parametrize(("agent", "said"), [("ReturnsText", "str: AReaL raises"), ("ReturnsInt", "int: AReaL raises")])
def test_returns_that_the_framework_refuses(agent: str, said: str) -> None:
    found = trial(agent, "--rounds", "1", "--batch-size", "1", code=1)
    assert said in failures(found)["try.return"]


@pytest.mark.parametrize(
    ("agent", "said"),
    [
        ("NotAsync", "no `async def`"),
        ("NeedsArgument", "missing 1 required positional argument"),
        ("Nothing", "has no Nothing"),
        ("Dies", "exit code 7; its last output: out of luck"),
    ],
)
def test_what_cannot_run_is_said(agent: str, said: str) -> None:
    found = trial(agent, code=1)
    assert said in failures(found)["try.load"]


def test_arguments_of_the_constructor() -> None:
    assert failures(trial("NeedsArgument", "--init", '{"path": "abc"}', "--rounds", "1", "--batch-size", "1", code=0)) == {}


def test_a_cancellation_that_is_swallowed() -> None:
    found = trial("SwallowsCancellation", "--timeout", "2", code=1)
    assert {"try.stuck", "try.cancel"} <= set(failures(found))


@pytest.mark.parametrize("agent", ["SynchronousAgent", "AsynchronousAgent"])
def test_agent_lightnings_contract(agent: str) -> None:
    found = trial(agent, "--rounds", "1", "--batch-size", "1", code=0)
    assert found["facts"]["contract"] == "agent-lightning"
    assert found["rewards"]["count"] == 9


def test_a_synchronous_rollout_that_never_comes_back() -> None:
    found = trial("SilentSynchronousTool", "--timeout", "3", code=1)
    assert "1 has not come back from its synchronous call" in failures(found)["try.stuck"]
    assert "RRD502" in failures(found)["try.stuck"] and "SilentSynchronousTool.rollout" in failures(found)["try.stuck"]


@contextlib.contextmanager
def engine() -> Iterator[str]:
    """A server that is not ours: ``host:port``."""
    argv = [sys.executable, "-c", "from ray_rl_debug.trial.stand_in import main; main()", '{"latency_s": 0.01}']
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None and running.stdin is not None
        try:
            yield f"127.0.0.1:{running.stdout.readline().strip()}"
        finally:
            running.stdin.close()


def test_rewards_that_are_equal_in_each_group(tmp_path: Path) -> None:
    """Against a server that is not ours: only then rewards mean something."""
    data = tmp_path / "rows.jsonl"
    data.write_text("".join(json.dumps({"worth": i}) + "\n" for i in range(16)))
    with engine() as address:
        found = trial("ReadsRows", "--data", str(data), "--endpoint", address, "--batch-size", "16", "--rounds", "1", code=0)
    warned = [r["measured"] for r in found["results"] if r["status"] == "warn"]
    assert len(warned) == 1
    assert "groups have equal rewards, deviation within a group 0" in warned[0]
    assert found["rewards"]["equal_groups"] == found["rewards"]["groups"] > 16
    assert found["facts"]["stages"][0]["engine_peak"] is None


def test_servers_that_areal_names(monkeypatch: pytest.MonkeyPatch) -> None:
    with engine() as first, engine() as second:
        monkeypatch.setenv("AREAL_LLM_SERVER_ADDRS", f"{first},{second}")
        found = trial("Good", "--rounds", "1", code=0)
    assert found["facts"]["endpoints"] == [f"http://{first}/v1", f"http://{second}/v1"]
    assert found["facts"]["is_stand_in"] is False


def test_ctrl_c_prints_what_was_measured(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    argv = [*COMMAND, f"{AGENTS}:SilentTool", "--json", "--timeout", "60"]
    env = {**os.environ, "READY": str(ready)}
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env) as running:
        deadline = time.monotonic() + 30
        while not ready.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        os.kill(running.pid, signal.SIGINT)
        out, _ = running.communicate(timeout=30)
    assert running.returncode == 130
    found = json.loads(out)
    assert found["facts"]["is_interrupted"] is True
    assert len(found["facts"]["episodes"]) == 1


def test_nothing_is_left_behind() -> None:
    """Killed without a word: the child and the stand-in end by themselves."""
    argv = [*COMMAND, f"{AGENTS}:BlocksLoop", "-q"]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        deadline = time.monotonic() + 30
        while len(below := _children(running.pid)) < 2 and time.monotonic() < deadline:
            time.sleep(0.1)
        assert len(below) == 2
        running.kill()
    deadline = time.monotonic() + 10
    while any(Path(f"/proc/{pid}").exists() for pid in below) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert [pid for pid in below if Path(f"/proc/{pid}").exists()] == []


def _children(pid: int) -> list[int]:
    return [int(word) for task in Path(f"/proc/{pid}/task").iterdir() for word in (task / "children").read_text().split()]


def test_the_terminal_names_the_place_and_what_to_type() -> None:
    done = subprocess.run(
        [*COMMAND, f"{AGENTS}:SilentTool", "--timeout", "3", "--batch-size", "1"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert done.stdout.startswith("FAIL: ")
    assert "SilentTool.call_tool" in done.stdout
    assert done.stdout.rstrip().endswith("next: rayrl-debug explain RRD251")
