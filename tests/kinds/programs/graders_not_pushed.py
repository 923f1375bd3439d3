"""A driver lends its two graders from a pool of actors (`ray.util.ActorPool`), and looks there until one is free; a thread of it evaluates with one.

A grader that has failed is not given back: when both are lost the driver looks for ever. In the twin the thread has both for half a minute.
"""

from __future__ import annotations

import threading
import time

import kit
import ray
from ray.util import ActorPool


@ray.remote(num_cpus=0)
class Grader:
    def grade(self, step: int, seconds: float = 0.0) -> int:
        kit.work(0.3)
        time.sleep(seconds)
        if not seconds and kit.differs(step):
            raise ValueError(f"no answer in {step}")
        return step


def lend(pool: ActorPool) -> ray.actor.ActorHandle:
    while not pool.has_free():
        time.sleep(0.2)
    return pool.pop_idle()


def evaluate(pool: ActorPool, step: int) -> None:
    graders = [lend(pool), lend(pool)]
    ray.get([grader.grade.remote(step, kit.LONG_S) for grader in graders])
    for grader in graders:
        pool.push(grader)


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    pool = ActorPool([Grader.remote() for _ in range(2)])
    for step in range(1, 10**6):
        if kit.is_late(step):
            threading.Thread(target=evaluate, args=(pool, step), daemon=True).start()
            time.sleep(1)
        if kit.differs(step):
            kit.mark("main")
        grader = lend(pool)
        try:
            ray.get(grader.grade.remote(step))
            pool.push(grader)
        except ValueError as error:
            print(error)
        kit.step(step)


if __name__ == "__main__":
    main()
