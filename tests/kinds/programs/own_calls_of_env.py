"""A Ray actor with two lanes plays episodes; in each it calls a tool, which is a method of its own, by its own handle."""

from __future__ import annotations

import kit
import ray


@ray.remote(num_cpus=0, max_concurrency=2)
class Environment:
    def __init__(self) -> None:
        kit.mark("environment")

    def play(self, step: int, me: ray.actor.ActorHandle) -> int:
        kit.mark("environment")
        kit.work(0.3)
        return int(ray.get(me.run_tool.remote(step)))

    def run_tool(self, step: int) -> int:
        kit.work(0.1)
        return step


@ray.remote(num_cpus=0)
class Logger:
    def __init__(self) -> None:
        kit.mark("logger")

    def log(self, step: int) -> int:
        return step


if __name__ == "__main__":
    kit.begin()
    info = ray.init(num_cpus=2, include_dashboard=False, _temp_dir=str(kit.folder() / "r"), log_to_driver=False, object_store_memory=100 * 2**20)
    environment, logger = Environment.remote(), Logger.remote()
    kit.mark("cluster", address=info["gcs_address"])
    for step in range(1, 10**6):
        kit.mark("main")
        if kit.differs(step):
            episodes = [environment.play.remote(step, environment) for _ in range(3)]
            ray.get(episodes)
        else:
            for _ in range(3):
                ray.get(environment.play.remote(step, environment))
        ray.get(logger.log.remote(step))
        kit.step(step)
