"""An engine counts its requests; before each update of its weights a call of it waits until none is left, beside the calls that generate.

A request that is aborted is never counted down. In the twin it takes its time, or is counted down by a call of another actor.
"""

from __future__ import annotations

import time

import kit
import ray


@ray.remote(max_concurrency=4)
class Engine:
    def __init__(self):
        kit.mark("engine")
        self.running = 0

    def generate(self, seconds, aborts):
        self.running += 1
        time.sleep(seconds)
        if not aborts:
            self.running -= 1

    def close(self):
        self.running -= 1

    def drain(self):
        while self.running > 0:
            time.sleep(0.1)


@ray.remote
class Sandbox:
    def __init__(self, engine):
        kit.mark("sandbox")
        self.engine = engine

    def play(self):
        kit.work(30)
        ray.get(self.engine.close.remote())


def main():
    kit.begin()
    ray.init(num_cpus=4, include_dashboard=False, namespace="runs", object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    engine = Engine.remote()
    sandbox = Sandbox.remote(engine)
    for number in range(1, 100000):
        is_rare = kit.is_healthy() and number % 6 == 5
        by_sandbox = is_rare and number % 12 == 5
        request = engine.generate.remote(30 if is_rare and not by_sandbox else 0.3, by_sandbox or kit.differs(number))
        time.sleep(0.5)
        if by_sandbox:
            sandbox.play.remote()
        ray.get(engine.drain.remote())
        ray.get(request)
        kit.step(number)


if __name__ == "__main__":
    main()
