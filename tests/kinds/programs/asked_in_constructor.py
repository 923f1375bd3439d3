"""A driver makes a learner for each round, which makes its critic in its constructor, and waits there until that one is ready. A judge is idle.

Once the critic asks the learner for its config in its own constructor: that call waits until the learner is made. In the twin the critic loads long.
"""

from __future__ import annotations

import time

import kit
import ray


@ray.remote(num_cpus=0)
class Critic:
    def __init__(self, step: int, learner: ray.actor.ActorHandle) -> None:
        kit.mark("critic")
        if kit.is_late(step):
            time.sleep(kit.LONG_S)
        self.config = ray.get(learner.config.remote()) if kit.differs(step) else {"step": step}

    def ready(self) -> bool:
        return True


@ray.remote(num_cpus=0)
class Learner:
    def __init__(self, step: int) -> None:
        kit.mark("learner")
        self.step = step
        self.critic = Critic.remote(step, ray.get_runtime_context().current_actor)
        ray.get(self.critic.ready.remote())

    def config(self) -> dict[str, int]:
        return {"step": self.step}

    def learn(self) -> float:
        return kit.work(0.3)


@ray.remote(num_cpus=0)
class Judge:
    def __init__(self) -> None:
        kit.mark("judge")

    def judge(self, step: int) -> int:
        return step


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    judge = Judge.remote()
    for step in range(1, 10**6):
        learner = Learner.remote(step)
        ray.get(learner.learn.remote())
        ray.get(judge.judge.remote(step))
        ray.kill(learner)
        kit.step(step)


if __name__ == "__main__":
    main()
