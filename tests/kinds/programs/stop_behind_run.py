"""A rollout actor of Ray plays in one long call until it is told to stop, and answers for its state in a lane of its own.

The call that stops it goes into the lane of the long one, and stands behind it for ever. In the twin it has a lane, and the last episode is long.
"""

import time

import kit
import ray


@ray.remote(num_cpus=0, concurrency_groups={"state": 1, "control": 1})
class Rollout:
    def __init__(self) -> None:
        kit.mark("rollout")
        self.stopped = False
        self.played = 0

    def run(self, number: int) -> int:
        while not self.stopped:
            if self.played < number * 3:
                kit.work(0.2)
                self.played += 1
            time.sleep(0.25)
        if kit.is_late(number):
            for _ in range(20):
                kit.work()
        self.stopped = False
        return self.played

    @ray.method(concurrency_group="state")
    def progress(self) -> int:
        return self.played

    def stop(self) -> None:
        self.stopped = True


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    rollout = Rollout.remote()
    for number in range(1, 10**6):
        running = rollout.run.remote(number)
        while ray.get(rollout.progress.remote()) < number * 3:
            time.sleep(0.2)
        lane = {} if kit.differs(number) else {"concurrency_group": "control"}
        stopping = rollout.stop.options(**lane).remote()
        ray.get([stopping, running])
        kit.step(number)


if __name__ == "__main__":
    main()
