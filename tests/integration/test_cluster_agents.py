"""Agents that stay: found again, shared, replaced when they die, gone when nobody wants them any more."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from integration.clusters import ENVIRONMENT, cluster, command, environment, processes_titled, program, state_of, wait_for

from ray_rl_debug.capture.cluster import ClusterOptions
from ray_rl_debug.capture.warm_agents import Agents
from ray_rl_debug.collect.options import CollectOptions
from ray_rl_debug.model import gaps
from ray_rl_debug.model.codec import read_snapshot
from ray_rl_debug.model.snapshot import Snapshot

pytestmark = pytest.mark.integration

QUICK = CollectOptions(samples=2, interval_s=0.2)
ECHO = "ray_rl_debug.model.codec:inflate"
"""A function of ours, bytes to bytes, that gives plain data back as it is."""


@pytest.fixture(scope="module")
def running() -> Iterator[dict[str, Any]]:
    with cluster(2) as c, program("job_program.py", c["address"], "Stage", 4) as job:
        yield {**c, **job}


@pytest.fixture
def options(running: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> ClusterOptions:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    return ClusterOptions(address=running["address"], collect=QUICK, timeout_s=40.0)


def agent_pids(running: dict[str, Any]) -> set[int]:
    """Agents of this cluster alone: children of its raylets."""
    return {pid for pid in processes_titled("ray::RayRlDebugAgent") if _parent(pid) in running["raylets"] and state_of(pid) not in ("Z", None)}


def _parent(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None


def is_whole(snapshot: Snapshot, running: dict[str, Any]) -> bool:
    seen = {p.pid: p for n in snapshot.nodes for p in n.processes}
    assert not {g.id for g in snapshot.gaps} & {gaps.NODE_SILENT, gaps.AGENT_SILENT}, snapshot.gaps
    return all(len(seen[pid].samples) == 2 for pid in (*running["pids"], running["driver"]))


def test_they_stay_answer_and_go(running: dict[str, Any], options: ClusterOptions, tmp_path: Path) -> None:
    with Agents(options) as agents:
        assert agents.start() == {}
        assert len(agents.nodes) == 2
        stayed = agent_pids(running)
        assert len(stayed) == 2
        assert agents.refresh() == {}
        answers = agents.ask(ECHO, b"still there?", deadline_s=10)
        assert sorted((a.node, a.data, a.reason) for a in answers) == sorted((name, b"still there?", None) for name in agents.nodes)
        snapshot = agents.gather()
        assert is_whole(snapshot, running)
        assert {c.node for c in snapshot.clocks} == set(agents.nodes)
        assert all(abs(c.ahead_s) <= c.bound_s + 0.05 for c in snapshot.clocks), "one machine, one clock"
        done = command("snapshot", "--address", running["address"], "--samples", 2, "--interval", 0.2, "-o", tmp_path)
        assert done.returncode in (0, 1, 3), done.stderr
        assert is_whole(read_snapshot(tmp_path / "snapshot.json.gz"), running)
        assert agent_pids(running) == stayed, "the command used them and left them"
        assert not [p for n in snapshot.nodes for p in n.processes if p.pid in stayed and p.samples], "they do not look at themselves"
        agents.stop()
    wait_for(lambda: not agent_pids(running))


def test_a_dead_agent_is_told_and_replaced(running: dict[str, Any], options: ClusterOptions) -> None:
    with Agents(options) as agents:
        agents.start()
        victim, other = sorted(agent_pids(running))
        os.kill(victim, signal.SIGKILL)
        answers = agents.ask(ECHO, b"", deadline_s=10)
        assert sorted(a.data is not None for a in answers) == [False, True]
        assert "died" in next(a.reason or "" for a in answers if a.data is None)
        assert agents.refresh(deadline_s=40) == {}
        assert len(agent_pids(running)) == 2
        assert other in agent_pids(running)
        os.kill(other, signal.SIGKILL)
        assert is_whole(agents.gather(), running), "a capture replaces it on its way"
        agents.stop()
    wait_for(lambda: not agent_pids(running))


def test_claims_of_two_keepers(running: dict[str, Any], options: ClusterOptions) -> None:
    with Agents(options) as first, Agents(options) as second:
        first.start()
        shared = agent_pids(running)
        second.start()
        assert agent_pids(running) == shared
        first.stop()
        assert all(a.data == b"x" for a in second.ask(ECHO, b"x", deadline_s=10))
        assert agent_pids(running) == shared
        second.stop()
    wait_for(lambda: not agent_pids(running))


def test_our_driver_may_die_and_a_successor_goes_on(running: dict[str, Any], options: ClusterOptions) -> None:
    with Agents(options, keeper="night") as agents:
        agents.start()
        stayed = agent_pids(running)
        assert agents._driver is not None
        assert agents._driver.pid is not None
        os.kill(agents._driver.pid, signal.SIGKILL)
        wait_for(lambda: agents._driver is not None and not agents._driver.settle(0))
        assert is_whole(agents.gather(), running)
        assert agent_pids(running) == stayed
    assert agent_pids(running) == stayed, "nobody said stop"
    with Agents(options, keeper="night") as successor:
        successor.start()
        assert agent_pids(running) == stayed
        successor.stop()
    wait_for(lambda: not agent_pids(running))


def test_what_is_not_ours_or_too_large_is_not_asked(running: dict[str, Any], options: ClusterOptions) -> None:
    with Agents(options) as agents:
        agents.start()
        assert all("not a function of ours" in (a.reason or "") for a in agents.ask("os:getcwdb", deadline_s=10))
        assert all("more than 90000" in (a.reason or "") for a in agents.ask(ECHO, bytes(90_001), deadline_s=10))
        agents.stop()
    wait_for(lambda: not agent_pids(running))


FORGOTTEN = """
import os, sys, time, ray
from ray_rl_debug.cluster.node_agent import RayRlDebugAgent

class Brief(RayRlDebugAgent):
    def __init__(self):
        import ray_rl_debug.cluster.node_agent
        ray_rl_debug.cluster.node_agent.HOLD_S = 2.0
        super().__init__(True)

    def pid(self):
        return os.getpid()

ray.init(address=sys.argv[1], namespace="rayrl_debug", log_to_driver=False, logging_level="ERROR")
agent = ray.remote(Brief).options(num_cpus=0, max_concurrency=4, name="brief", lifetime="detached").remote()
for _ in range(3):
    ray.get(agent.ready.remote("a keeper that is killed soon"))
    time.sleep(1)
print(ray.get(agent.pid.remote()), flush=True)
os._exit(0)
"""


def test_an_agent_whose_keeper_was_killed_removes_itself(running: dict[str, Any]) -> None:
    env = environment(PYTHONPATH=str(Path(__file__).parents[2]))
    done = subprocess.run([sys.executable, "-c", FORGOTTEN, running["address"]], capture_output=True, text=True, timeout=120, check=False, env=env)
    assert done.returncode == 0, done.stderr
    wait_for(lambda: state_of(int(done.stdout)) in ("Z", None))
