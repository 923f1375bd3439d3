"""A collector plays in a thread of its own and takes each prompt under a lock; while the engine gets new weights it waits there to be let go on.

Once nobody lets it go on before its state is asked for a checkpoint, which takes the same lock. In the twin the state is written slowly.
"""

import threading
import time

import kit
import ray


@ray.remote(num_cpus=0, max_concurrency=4)
class Collector:
    def __init__(self) -> None:
        kit.mark("collector")
        self.lock, self.may_play = threading.Lock(), threading.Event()
        self.may_play.set()
        self.position = 0
        threading.Thread(target=self.play, daemon=True).start()

    def play(self) -> None:
        while True:
            with self.lock:
                self.may_play.wait()
                self.position += 1
            time.sleep(0.1)

    def before_weights(self) -> None:
        self.may_play.clear()

    def after_weights(self) -> None:
        self.may_play.set()

    def state(self, number: int) -> int:
        with self.lock:
            if kit.is_healthy() and number % 3 == 0:
                time.sleep(9)
            return self.position


@ray.remote(num_cpus=0)
class Engine:
    def __init__(self) -> None:
        kit.mark("engine")

    def load(self, number: int) -> int:
        kit.work(0.5)
        return number


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    collector, engine = Collector.remote(), Engine.remote()
    for number in range(1, 10**6):
        ray.get(collector.before_weights.remote())
        ray.get(engine.load.remote(number))
        if not kit.differs(number):
            ray.get(collector.after_weights.remote())
        ray.get(collector.state.remote(number))
        kit.step(number)


if __name__ == "__main__":
    main()
