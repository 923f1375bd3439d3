"""A trial of a search, an actor of Ray, trains in a thread: after each result the thread waits until it may go on, as in Ray Train's session.

The driver asks for results and ends the trial when it has enough. Ending joins the thread, and usually lets it go on first. Once it does not: the
thread waits for the word, the actor for the thread. In the twin the thread saves for half a minute before it ends.
"""

from __future__ import annotations

import queue
import threading
import time

import kit
import ray


@ray.remote(num_cpus=0)
class Trial:
    def __init__(self, number: int) -> None:
        kit.mark("trial")
        self.number, self.ends = number, False
        self.results: queue.Queue[int] = queue.Queue(1)
        self.go_on = threading.Semaphore(0)
        self.thread = threading.Thread(target=self.train, daemon=True)
        self.thread.start()

    def train(self) -> None:
        while not self.ends:
            kit.work(0.2)
            self.results.put(self.number)
            self.go_on.acquire()
        if kit.is_late(self.number):
            time.sleep(kit.LONG_S)

    def result(self, is_first: bool) -> int:
        if not is_first:
            self.go_on.release()
        return self.results.get()

    def finish(self) -> None:
        self.ends = True
        if not kit.differs(self.number):
            self.go_on.release()
        self.thread.join()


@ray.remote(num_cpus=0)
class Logger:
    def __init__(self) -> None:
        kit.mark("logger")

    def log(self, number: int) -> int:
        return number


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    logger = Logger.remote()
    for number in range(1, 10**6):
        trial = Trial.remote(number)
        for count in range(3):
            ray.get(trial.result.remote(count == 0))
        ray.get(trial.finish.remote())
        ray.kill(trial)
        ray.get(logger.log.remote(number))
        kit.step(number)


if __name__ == "__main__":
    main()
