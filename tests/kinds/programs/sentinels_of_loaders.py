"""Three loaders fill one queue of Ray; the learner takes from it until it has seen the end of each of them. Nobody fetches what the loaders return.

A loader's call raises at a broken sample, before it has put its end there; it is idle then, like the others. In the twin its storage refuses for a
while, and it tries again after a back-off.
"""

import time

import kit
import ray
from ray.util.queue import Queue

LOADERS = 3
END = "end"


@ray.remote(num_cpus=0)
class Loader:
    def __init__(self, n: int, queue: Queue) -> None:
        self.n, self.queue = n, queue
        kit.mark(f"loader{n}")

    def read(self, number: int, sample: int) -> str:
        refused_until = time.monotonic() + (14 if kit.is_healthy() and number > 2 and self.n == 2 and sample == 1 else 0)
        for attempt in range(8):
            if time.monotonic() >= refused_until:
                break
            time.sleep(min(2**attempt, 8))
        if self.n == 2 and sample == 1 and kit.differs(number):
            raise ValueError("not a sample")
        kit.work(0.1)
        return f"sample {sample}"

    def load(self, number: int) -> None:
        for sample in range(3):
            self.queue.put(self.read(number, sample))
        self.queue.put(END)


@ray.remote(num_cpus=0)
class Learner:
    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        kit.mark("learner")

    def epoch(self, number: int) -> int:
        ends = taken = 0
        while ends < LOADERS:
            if self.queue.get() == END:
                ends += 1
            else:
                taken += 1
        kit.work(0.3)
        return taken


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    queue = Queue(maxsize=4, actor_options={"num_cpus": 0})
    loaders, learner = [Loader.remote(n, queue) for n in range(LOADERS)], Learner.remote(queue)
    for number in range(1, 10**6):
        for loader in loaders:
            loader.load.remote(number)
        ray.get(learner.epoch.remote(number))
        kit.step(number)


if __name__ == "__main__":
    main()
