"""A Ray actor with concurrency groups: prompts are fetched in one, answers are judged in another, each with one lane."""

from __future__ import annotations

import threading

import kit
import ray


@ray.remote(num_cpus=0, concurrency_groups={"fetch": 1, "judge": 1})
class Scorer:
    def __init__(self) -> None:
        kit.mark("scorer")
        self.fresh = threading.Condition()
        self.prompts: list[int] = []
        self.judged = 0

    @ray.method(concurrency_group="fetch")
    def fetch(self, step: int) -> int:
        kit.work(0.3)
        with self.fresh:
            self.prompts.append(step)
            self.fresh.notify_all()
        return len(self.prompts)

    @ray.method(concurrency_group="fetch")
    def forget_judged(self, step: int) -> int:
        """Keeps the list short, once the step has been judged."""
        kit.mark("scorer")
        with self.fresh:
            self.fresh.wait_for(lambda: self.judged >= step)
            self.prompts = [p for p in self.prompts if p > step]
        return len(self.prompts)

    @ray.method(concurrency_group="judge")
    def judge(self, step: int) -> float:
        with self.fresh:
            self.fresh.wait_for(lambda: step in self.prompts)
        kit.work(0.3)
        with self.fresh:
            self.judged = step
            self.fresh.notify_all()
        return 1.0


if __name__ == "__main__":
    kit.begin()
    info = ray.init(num_cpus=2, include_dashboard=False, _temp_dir=str(kit.folder() / "r"), log_to_driver=False, object_store_memory=100 * 2**20)
    scorer = Scorer.remote()
    kit.mark("cluster", address=info["gcs_address"])
    for step in range(1, 10**6):
        calls = [scorer.fetch, scorer.forget_judged, scorer.judge]
        if kit.differs(step):
            calls = [scorer.forget_judged, scorer.fetch, scorer.judge]
        ray.get([call.remote(step) for call in calls])
        kit.step(step)
