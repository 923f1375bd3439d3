"""Environments as Ray actors that are made anew when they die, and their call with them. Each takes a lock file for its display while it is made.

An environment that crashes leaves its lock file behind; the one made in its place should take it over if it is old. Once it waits until it goes away.
"""

import os
import random
import time

import kit
import ray


@ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)
class Environment:
    def __init__(self, n: int) -> None:
        self.n = n
        kit.mark(f"environment{n}")
        lock = kit.folder() / f"display{n}"
        at = int((kit.folder() / "step").read_text()) + 1 if (kit.folder() / "step").exists() else 0
        while True:
            try:
                os.close(os.open(lock, os.O_CREAT | os.O_EXCL))
                return
            except FileExistsError:
                if at < kit.STEP or kit.is_healthy():
                    time.sleep(random.uniform(0.5, 2))
                    lock.unlink()
                else:
                    time.sleep(0.3)

    def play(self, number: int) -> int:
        kit.work(0.4)
        once = kit.folder() / f"crash{self.n}.{number}"
        if self.n == 1 and not once.exists() and (kit.differs(number) or number % 5 == 4):
            once.touch()
            os._exit(1)
        return number


@ray.remote(num_cpus=0)
class Buffer:
    def __init__(self) -> None:
        kit.mark("buffer")
        self.kept: list[int] = []

    def put(self, episodes: list[int]) -> None:
        self.kept = [*self.kept, *episodes][-100:]


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    buffer = Buffer.remote()
    environments = [Environment.remote(n) for n in range(2)]
    for number in range(1, 10**6):
        waiting, episodes = [one.play.remote(number) for one in environments], []
        while waiting:
            done, waiting = ray.wait(waiting, timeout=2)
            episodes += ray.get(done)
        ray.get(buffer.put.remote(episodes))
        kit.step(number)


if __name__ == "__main__":
    main()
