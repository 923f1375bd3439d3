"""The driver hands batches to a trainer and its weights to a rollout, all as references; it waits for the update only.

A rollout plays with the newest weights and waits for them. Asked for the weights behind the update, the trainer is never asked: a caller's
calls start in their order, the update waits for its batch, and the batch for the weights. All three are idle. In the twin episodes are long.
"""

import threading
import time

import kit
import ray


@ray.remote(num_cpus=0, max_concurrency=2)
class Rollout:
    def __init__(self) -> None:
        kit.mark("rollout")
        self.version = 0
        self.newer = threading.Condition()

    def generate(self, number: int) -> int:
        with self.newer:
            self.newer.wait_for(lambda: self.version >= number)
        kit.work(0.4)
        if number % 3 == 0:
            time.sleep(3)
        return number

    def take_weights(self, version: int) -> None:
        with self.newer:
            self.version = version
            self.newer.notify_all()


@ray.remote(num_cpus=0)
class Trainer:
    def __init__(self) -> None:
        kit.mark("trainer")
        self.version = 0

    def update(self, batch: int) -> int:
        kit.work(0.3)
        return batch

    def weights(self) -> int:
        self.version += 1
        return self.version


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    rollout, trainer = Rollout.remote(), Trainer.remote()
    for number in range(1, 10**6):
        if kit.differs(number):
            updated = trainer.update.remote(rollout.generate.remote(number))
            taken = rollout.take_weights.remote(trainer.weights.remote())
        else:
            taken = rollout.take_weights.remote(trainer.weights.remote())
            updated = trainer.update.remote(rollout.generate.remote(number))
        ray.get(updated)
        ray.get(taken)
        kit.step(number)


if __name__ == "__main__":
    main()
