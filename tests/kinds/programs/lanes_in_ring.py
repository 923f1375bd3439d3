"""An engine's generating lanes wait for the reward, the reward for the engine's version, and that call is queued behind a pause.

The pause drains those lanes. The engine's lane for metrics answers all the time.
"""

import threading
import time
from typing import Any

import ray
from kit import begin, differs, mark, step, work


@ray.remote(concurrency_groups={"generation": 2, "control": 1, "metrics": 1})
class Engine:
    def __init__(self, reward: Any) -> None:
        mark("engine")
        self.reward = reward
        self.running = 0
        self.change = threading.Condition()

    @ray.method(concurrency_group="generation")
    def generate(self, number: int) -> float:
        with self.change:
            self.running += 1
        try:
            return float(ray.get(self.reward.score.remote(number)))
        finally:
            with self.change:
                self.running -= 1
                self.change.notify_all()

    @ray.method(concurrency_group="control")
    def drain(self) -> None:
        with self.change:
            self.change.wait_for(lambda: not self.running)

    @ray.method(concurrency_group="control")
    def version(self) -> int:
        return 1

    @ray.method(concurrency_group="metrics")
    def stats(self) -> int:
        return self.running


@ray.remote
class Reward:
    def __init__(self) -> None:
        mark("reward")

    def score(self, number: int) -> float:
        time.sleep(1.2)
        if differs(number):
            return 0.5 * int(ray.get(ray.get_actor("engine").version.remote()))
        work(0.1)
        return 0.5


def look(engine: Any) -> None:
    while True:
        ray.get(engine.stats.remote())
        time.sleep(0.5)


def main() -> None:
    begin()
    ray.init(address="local", num_cpus=3, include_dashboard=False, log_to_driver=False)
    mark("cluster", address=ray.get_runtime_context().gcs_address)
    engine = Engine.options(name="engine").remote(Reward.remote())
    threading.Thread(target=look, args=(engine,), daemon=True).start()
    for number in range(10**6):
        answers = [engine.generate.remote(number) for _ in range(2)]
        time.sleep(0.4)
        ray.get(engine.drain.remote())
        ray.get(answers)
        step(number)


if __name__ == "__main__":
    main()
