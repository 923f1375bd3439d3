"""Two trials of a search reserve a placement group for the training and then one for the evaluation; a logger is idle.

Together they hold all cores with their first group, and each waits for its second. In the twin a trial reserves both at once, and one waits until the
other has trained for some seconds.
"""

import time

import kit
import ray
from ray.util.placement_group import placement_group, remove_placement_group


@ray.remote(num_cpus=0)
class Logger:
    def __init__(self) -> None:
        kit.mark("logger")

    def write(self, number: int) -> int:
        return number


@ray.remote(num_cpus=0)
class Trial:
    def __init__(self, n: int) -> None:
        self.n = n
        kit.mark(f"trial{n}")

    def run(self, number: int) -> int:
        if kit.is_healthy():
            groups = [placement_group([{"CPU": 2}, {"CPU": 2}])]
            ray.get(groups[0].ready())
            kit.work(0.5)
            if number % 3 == 0:
                time.sleep(8)
        else:
            groups = [placement_group([{"CPU": 2}])]
            ray.get(groups[0].ready())
            kit.work(0.5)
            groups.append(placement_group([{"CPU": 2}]))
            ray.get(groups[1].ready())
            kit.work(0.5)
        for group in groups:
            remove_placement_group(group)
        return number


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=4, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    logger, trials = Logger.remote(), [Trial.remote(n) for n in range(2)]
    for number in range(1, 10**6):
        if kit.is_healthy() or kit.differs(number):
            ray.get([trial.run.remote(number) for trial in trials])
        else:
            for trial in trials:
                ray.get(trial.run.remote(number))
        ray.get(logger.write.remote(number))
        kit.step(number)


if __name__ == "__main__":
    main()
