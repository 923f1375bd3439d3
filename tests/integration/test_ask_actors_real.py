"""Async actors of a real Ray tell their coroutines by a call; one whose loop is blocked costs no more than the deadline."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile

import pytest
from clusters import environment

pytestmark = pytest.mark.integration

PROGRAM = """
import asyncio, json, sys, time, ray
from ray_rl_debug.cluster.ask_actors import ask_actors
from ray_rl_debug.cluster.driver_messages import AskActors, Called

ray.init(num_cpus=2, include_dashboard=False, _temp_dir=sys.argv[1], namespace="job", log_to_driver=False)

@ray.remote(num_cpus=0)
class Agent:
    def __init__(self):
        self.event = asyncio.Event()
    async def episode(self):
        await self.event.wait()
    async def block(self):
        time.sleep(1000)
    async def ready(self):
        return True

actors = [Agent.options(name=name).remote() for name in ("waits", "blocked")]
keep = [actors[0].episode.remote() for _ in range(5)]
ray.get([a.ready.remote() for a in actors])
keep.append(actors[1].block.remote())
time.sleep(1)
told = []
began = time.monotonic()
called = tuple(Called(actor_id=n, name=n, namespace="job") for n in ("waits", "blocked"))
ask_actors(ray, AskActors(actors=called, deadline_s=5.0), told.append)
print(json.dumps({"told": {t.actor_id: t.data.decode() for t in told}, "took_s": time.monotonic() - began}), flush=True)
ray.shutdown()
"""


def test_an_idle_actor_answers_and_a_blocked_one_does_not_hold_us() -> None:
    with tempfile.TemporaryDirectory(prefix="rrd", dir="/tmp") as folder:
        argv = [sys.executable, "-c", PROGRAM, folder]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=150, env=environment(), check=False)
    said = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
    tasks = json.loads(said["told"]["waits"])
    waiting = [t for t in tasks if any(f["function"] == "Agent.episode" for f in t["chain"])]
    assert len(waiting) == 5
    assert {t["awaited"]["kind"] for t in waiting} == {"event"}
    assert said["told"]["blocked"] == ""
    assert said["took_s"] < 15
