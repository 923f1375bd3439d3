"""A critic asks the actor that has called it for more, in the one lane that this actor has for questions."""

from __future__ import annotations

import kit
import ray


@ray.remote(num_cpus=0, concurrency_groups={"questions": 1, "answers": 1})
class Writer:
    def __init__(self, critic: ray.actor.ActorHandle) -> None:
        kit.mark("writer")
        self.critic = critic

    @ray.method(concurrency_group="questions")
    def write(self, step: int, me: ray.actor.ActorHandle) -> int:
        kit.mark("writer")
        return int(ray.get(self.critic.judge.remote(step, me)))

    @ray.method(concurrency_group="answers")
    def explain(self, step: int) -> int:
        kit.work(0.3)
        return step

    @ray.method(concurrency_group="questions")
    def defend(self, step: int) -> int:
        kit.work(0.3)
        return step


@ray.remote(num_cpus=0)
class Critic:
    def __init__(self) -> None:
        kit.mark("critic")

    def judge(self, step: int, writer: ray.actor.ActorHandle) -> int:
        kit.mark("critic")
        kit.work(0.3)
        call = writer.defend if kit.differs(step) else writer.explain
        return int(ray.get(call.remote(step)))


if __name__ == "__main__":
    kit.begin()
    info = ray.init(num_cpus=2, include_dashboard=False, _temp_dir=str(kit.folder() / "r"), log_to_driver=False, object_store_memory=100 * 2**20)
    critic = Critic.remote()
    writer = Writer.remote(critic)
    kit.mark("cluster", address=info["gcs_address"])
    for step in range(1, 10**6):
        ray.get(writer.write.remote(step, writer))
        kit.step(step)
