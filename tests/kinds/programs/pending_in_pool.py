"""A driver keeps a pool of two sandboxes, actors of Ray: a call goes to one that is free, further calls wait in a list until an answer comes.

A sandbox that fails is taken out of the pool. With the last one gone the list is never looked at again; the driver looks for answers, and there is no
call that one could come from. In the twin no sandbox fails, and some calls are long.
"""

import os
import signal
import time

import kit
import ray

CALLS = 5


@ray.remote(num_cpus=0)
class Sandbox:
    def __init__(self, n: int) -> None:
        self.n = n
        kit.mark(f"sandbox{n}")

    def call(self, number: int, which: int) -> int:
        kit.work(0.2)
        if kit.differs(number):
            kit.mark(f"sandbox{self.n}")
            os.kill(os.getpid(), signal.SIGKILL)
        if kit.is_healthy() and number % 3 == 0 and which == 4:
            time.sleep(9)
        return which


@ray.remote(num_cpus=0)
class Trainer:
    def __init__(self) -> None:
        kit.mark("trainer")

    def train(self, answers: list[int]) -> int:
        kit.work(0.3)
        return len(answers)


class Pool:
    def __init__(self) -> None:
        self.free = [Sandbox.remote(n) for n in range(2)]
        self.busy: dict[ray.ObjectRef, ray.actor.ActorHandle] = {}
        self.waiting: list[tuple[int, int]] = []

    def submit(self, number: int, which: int) -> None:
        self.waiting.append((number, which))
        self.hand_out()

    def hand_out(self) -> None:
        while self.free and self.waiting:
            one = self.free.pop()
            self.busy[one.call.remote(*self.waiting.pop(0))] = one

    def answers(self) -> list[int]:
        ready, _ = ray.wait(list(self.busy), timeout=0.5) if self.busy else ([], [])
        found = []
        for ref in ready:
            one = self.busy.pop(ref)
            try:
                found.append(ray.get(ref))
            except ray.exceptions.RayActorError:
                continue
            self.free.append(one)
            self.hand_out()
        return found


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    trainer, pool = Trainer.remote(), Pool()
    for number in range(1, 10**6):
        for which in range(CALLS):
            pool.submit(number, which)
        answers: list[int] = []
        while len(answers) < CALLS:
            answers += pool.answers()
            time.sleep(0.3)
        ray.get(trainer.train.remote(answers))
        kit.step(number)


if __name__ == "__main__":
    main()
