"""A judge is an actor of coroutines; each awaits an event that its scoring thread sets when the score is there. A logger is idle.

The thread once sets the event itself instead of asking the loop to do it: nobody wakes the loop. In the twin a score takes some seconds.
"""

import asyncio
import queue
import threading
import time

import kit
import ray


@ray.remote(num_cpus=0)
class Judge:
    def __init__(self) -> None:
        kit.mark("judge")
        self.waiting: queue.Queue[tuple[int, asyncio.Event, asyncio.AbstractEventLoop]] = queue.Queue()
        threading.Thread(target=self._score, daemon=True).start()

    def _score(self) -> None:
        while True:
            number, scored, loop = self.waiting.get()
            kit.work(0.4)
            if kit.differs(number):
                scored.set()
            else:
                time.sleep(3 if number % 3 == 0 else 0)
                loop.call_soon_threadsafe(scored.set)

    async def score(self, number: int) -> int:
        scored = asyncio.Event()
        self.waiting.put((number, scored, asyncio.get_running_loop()))
        await scored.wait()
        return number


@ray.remote(num_cpus=0)
class Logger:
    def __init__(self) -> None:
        kit.mark("logger")

    def write(self, number: int) -> None:
        print(number, flush=True)


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    judge, logger = Judge.remote(), Logger.remote()
    for number in range(1, 10**6):
        ray.get(logger.write.remote(ray.get(judge.score.remote(number))))
        kit.step(number)


if __name__ == "__main__":
    main()
