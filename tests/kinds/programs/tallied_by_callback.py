"""A grader, an actor of Ray, hands answers to its pool and notes under a lock which are under way; a callback takes note of each that is done.

An answer that was graded before is done at once: its callback runs where it is added, under the lock that it wants. In the twin the callback
writes the log of grades for long.
"""

import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor

import kit
import ray


@ray.remote(num_cpus=0)
class Grader:
    def __init__(self) -> None:
        kit.mark("grader")
        self.pool = ThreadPoolExecutor(2)
        self.lock = threading.Lock()
        self.under_way: set[Future] = set()

    def grade_batch(self, number: int) -> int:
        asked = []
        for answer in range(3):
            with self.lock:
                future = self.ask(number, answer)
                self.under_way.add(future)
                future.add_done_callback(self.note)
                asked.append(future)
            time.sleep(0.2)
        return len([f.result() for f in asked])

    def ask(self, number: int, answer: int) -> Future:
        if answer == 1 and kit.differs(number):
            known: Future = Future()
            known.set_result(1.0)
            return known
        return self.pool.submit(self.score, number)

    def score(self, number: int) -> float:
        time.sleep(0.1)
        return kit.work(0.2)

    def note(self, future: Future) -> None:
        with self.lock:
            self.under_way.discard(future)
            if kit.is_late(int(time.time()) % 7):
                kit.in_c(5)
                time.sleep(3)


@ray.remote(num_cpus=0)
class Rollout:
    def __init__(self) -> None:
        kit.mark("rollout")

    def play(self, number: int) -> int:
        kit.work(0.3)
        return number


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    grader, rollout = Grader.remote(), Rollout.remote()
    for number in range(1, 10**6):
        ray.get(grader.grade_batch.remote(ray.get(rollout.play.remote(number))))
        kit.step(number)


if __name__ == "__main__":
    main()
