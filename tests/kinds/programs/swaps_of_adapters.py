"""An engine of Ray in two lanes: the decoding lane never rests, the lane for adapters waits at a barrier for a loading thread that has died."""

import threading
import time
from typing import Any

import ray
from kit import begin, differs, mark, step, work


@ray.remote(concurrency_groups={"decoding": 1, "adapters": 1})
class Engine:
    def __init__(self) -> None:
        mark("engine")
        self.tokens = 0

    @ray.method(concurrency_group="decoding")
    def decode(self) -> int:
        work(0.4)
        self.tokens += 1
        return self.tokens

    @ray.method(concurrency_group="adapters")
    def swap(self, number: int) -> int:
        meet = threading.Barrier(3)
        for part in range(2):
            threading.Thread(target=self.load, args=(meet, part, number)).start()
        meet.wait()
        return number

    def load(self, meet: threading.Barrier, part: int, number: int) -> None:
        work(0.1)
        if part == 1 and differs(number):
            raise KeyError("no such adapter")
        meet.wait()


def decode(engine: Any) -> None:
    while True:
        ray.get(engine.decode.remote())


def main() -> None:
    begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    mark("cluster", address=ray.get_runtime_context().gcs_address)
    engine = Engine.remote()
    threading.Thread(target=decode, args=(engine,), daemon=True).start()
    for number in range(10**6):
        time.sleep(0.2)
        ray.get(engine.swap.remote(number))
        step(number)


if __name__ == "__main__":
    main()
