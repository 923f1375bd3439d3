"""Rewards are computed in a pool of threads in a ``with``; one fails, but the error is not seen before the others are done, and one never is."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import kit
import ray


def reward(step: int, n: int) -> float:
    seconds = kit.work(0.2)
    if kit.differs(step):
        if n == 0:
            raise ValueError("no reward model for this prompt")
        if n == 2:
            kit.mark("scorer")
            with open(kit.fifo("reward")) as file:
                file.read()
    return seconds


@ray.remote(num_cpus=0)
class Scorer:
    def __init__(self) -> None:
        kit.mark("scorer")

    def score(self, step: int) -> float:
        with ThreadPoolExecutor(4) as pool:
            return sum(pool.map(lambda n: reward(step, n), range(4)))


if __name__ == "__main__":
    kit.begin()
    info = ray.init(num_cpus=2, include_dashboard=False, _temp_dir=str(kit.folder() / "r"), log_to_driver=False, object_store_memory=100 * 2**20)
    scorer = Scorer.remote()
    kit.mark("cluster", address=info["gcs_address"])
    for step in range(1, 10**6):
        ray.get(scorer.score.remote(step))
        kit.step(step)
