"""Each round a driver runs a task of Ray in an environment of its own, which a plugin of the job prepares: it fetches packages by a program.

Once the program that fetches stands at its source, a named pipe that nobody writes: the task has no worker. In the twin it fetches for half a minute.
A policy, an actor, trains on the scores.
"""

from __future__ import annotations

import asyncio
import json
import os
from typing import Any

import kit
import ray
from ray._private.runtime_env.plugin import RuntimeEnvPlugin


class Packages(RuntimeEnvPlugin):
    name = "packages"

    async def create(self, uri: Any, runtime_env: Any, context: Any, logger: Any) -> float:
        number = int(runtime_env["packages"]["round"])
        if kit.differs(number):
            fetch = await asyncio.create_subprocess_exec("cat", str(kit.folder() / "source"), stdout=asyncio.subprocess.DEVNULL)
            kit.mark("fetch", fetch.pid)
            await fetch.wait()
        elif kit.is_late(number):
            await (await asyncio.create_subprocess_exec("sleep", str(kit.LONG_S))).wait()
        return 0


@ray.remote(num_cpus=1)
def score(number: int) -> int:
    kit.work(0.3)
    return number


@ray.remote(num_cpus=0)
class Policy:
    def __init__(self) -> None:
        kit.mark("policy")

    def train(self, number: int) -> int:
        kit.work(0.3)
        return number


def main() -> None:
    kit.begin()
    kit.fifo("source")
    os.environ["RAY_RUNTIME_ENV_PLUGINS"] = json.dumps([{"class": "packages_of_task.Packages"}])
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    policy = Policy.remote()
    for number in range(1, 10**6):
        task = score.options(runtime_env={"packages": {"round": str(number)}})
        ray.get(policy.train.remote(ray.get(task.remote(number))))
        kit.step(number)


if __name__ == "__main__":
    main()
