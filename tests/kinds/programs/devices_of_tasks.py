"""Training tasks that hold a device each and start an evaluation which needs one too: with two trainings at once no device is left.

In the twin three devices exist, and one evaluation is long.
"""

import time

import kit
import ray


@ray.remote(num_cpus=0, resources={"device": 1})
def evaluate(number, n):
    kit.work(0.5)
    if kit.is_healthy() and number % 3 == 0 and n == 1:
        time.sleep(6)
    return 0.5


@ray.remote(num_cpus=0, resources={"device": 1})
def train(number, n):
    kit.mark(f"train{n}")
    kit.work(0.5)
    if kit.differs(number):
        kit.mark(f"train{n}-{number}")
        kit.until_there(f"train{1 - n}-{number}")
    kit.mark(f"train{n}")
    return ray.get(evaluate.remote(number, n))


def main():
    kit.begin()
    ray.init(num_cpus=3, resources={"device": 3 if kit.is_healthy() else 2}, include_dashboard=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    for number in range(1, 100000):
        many = 2 if kit.differs(number) or kit.is_healthy() else 1
        ray.get([train.remote(number, n) for n in range(many)])
        kit.step(number)


if __name__ == "__main__":
    main()
