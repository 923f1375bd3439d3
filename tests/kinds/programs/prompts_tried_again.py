"""An engine is restarted whenever it dies, and Ray calls it again without an end. One prompt kills it each time; a logger is idle.

In the twin a prompt kills it now and then, but only the first time.
"""

import os

import kit
import ray


@ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)
class Engine:
    def generate(self, number: int) -> int:
        kit.work(0.3)
        tried = kit.folder() / f"tried{number}"
        if kit.differs(number) or (number % 4 == 2 and not tried.exists()):
            tried.touch()
            os._exit(1)
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
    engine, logger = Engine.remote(), Logger.remote()
    for number in range(1, 10**6):
        ray.get(logger.write.remote(ray.get(engine.generate.remote(number))))
        kit.step(number)


if __name__ == "__main__":
    main()
