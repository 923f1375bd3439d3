"""Each round has a new environment, an actor of Ray, whose worker is started through a wrapper, as `uv run` is one.

Once the wrapper waits for its lock, here a named pipe that nobody writes to: the worker is never there. In the twin it takes half a minute.
"""

from __future__ import annotations

import sys

import kit
import ray

WRAPPER = """#!/bin/bash
if [ -e "$KIT_FOLDER/left" ]; then
  printf '{"pid": %d}' $$ > "$KIT_FOLDER/.wrapper" && mv "$KIT_FOLDER/.wrapper" "$KIT_FOLDER/wrapper.json"
  read -r _ < "$KIT_FOLDER/lock"
fi
if [ -e "$KIT_FOLDER/late" ]; then sleep 28; fi
exec "{python}" "$@"
"""


@ray.remote(num_cpus=0)
class Environment:
    def play(self, number: int) -> int:
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
    kit.fifo("lock")
    wrapper = kit.folder() / "wrapper.sh"
    wrapper.write_text(WRAPPER.replace("{python}", sys.executable))
    wrapper.chmod(0o755)
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    policy = Policy.remote()
    for number in range(1, 10**6):
        kit.differs(number)
        if kit.is_late(number):
            (kit.folder() / "late").touch()
        environment = Environment.options(runtime_env={"py_executable": str(wrapper)}).remote()
        ray.get(policy.train.remote(ray.get(environment.play.remote(number))))
        ray.kill(environment)
        kit.step(number)


if __name__ == "__main__":
    main()
