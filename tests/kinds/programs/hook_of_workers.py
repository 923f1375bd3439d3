"""Each step makes a new environment actor. Every worker process of Ray first runs a hook of the job, which reads a licence.

Once the licence is a pipe that nobody writes: the actor is never alive. In the twin the hook takes some seconds.
"""

import time

import kit
import ray


def read_licence() -> None:
    done = kit.folder() / "step"
    number = int(done.read_text()) + 1 if done.exists() else 0
    if kit.differs(number):
        kit.mark("worker")
        with open(kit.fifo("licence")) as licence:
            licence.read()
    time.sleep(2)


@ray.remote(num_cpus=0)
class Environment:
    def play(self, number: int) -> int:
        kit.work(0.3)
        return number


@ray.remote(num_cpus=0)
class Policy:
    def __init__(self) -> None:
        kit.mark("policy")

    def train(self, number: int) -> int:
        kit.work(0.3)
        return number


def main() -> None:
    kit.begin()
    settings = {"worker_process_setup_hook": read_licence}
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000, runtime_env=settings)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    policy = Policy.remote()
    for number in range(1, 10**6):
        environment = Environment.remote()
        ray.get(policy.train.remote(ray.get(environment.play.remote(number))))
        ray.kill(environment)
        kit.step(number)


if __name__ == "__main__":
    main()
