"""An engine of Ray with many lanes drains its calls before new weights; a call that raised was never counted out, so the drain waits for a notify."""

import threading
import time
from typing import Any

import ray
from kit import begin, differs, mark, step, work


@ray.remote(max_concurrency=6)
class Engine:
    def __init__(self) -> None:
        mark("engine")
        self.running = 0
        self.change = threading.Condition()

    def generate(self, number: int, prompt: int) -> int:
        with self.change:
            self.running += 1
        work(0.4)
        if prompt == 1 and differs(number):
            raise ValueError("prompt too long")
        with self.change:
            self.running -= 1
            self.change.notify_all()
        return number

    def update(self, number: int) -> int:
        with self.change:
            while self.running:
                self.change.wait()
        work(0.2)
        return number

    def stats(self) -> int:
        return self.running


def look(engine: Any) -> None:
    while True:
        ray.get(engine.stats.remote())
        time.sleep(0.5)


def main() -> None:
    begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    mark("cluster", address=ray.get_runtime_context().gcs_address)
    engine = Engine.remote()
    threading.Thread(target=look, args=(engine,), daemon=True).start()
    for number in range(10**6):
        for call in [engine.generate.remote(number, prompt) for prompt in range(3)]:
            try:
                ray.get(call)
            except ValueError:
                continue
        ray.get(engine.update.remote(number))
        step(number)


if __name__ == "__main__":
    main()
