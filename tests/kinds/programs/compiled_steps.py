"""Policy and critic are two actors in a compiled graph of Ray: the driver hands each batch in and waits for what comes out.

The critic reads its values from a pipe that nobody writes. In the twin such a batch takes some seconds.
"""

import time

import kit
import ray
from ray.dag import InputNode


@ray.remote(num_cpus=0)
class Stage:
    def __init__(self, name: str) -> None:
        self.name = name
        kit.mark(name)

    def run(self, number: int) -> int:
        kit.work(0.3)
        if self.name == "critic" and kit.differs(number):
            with open(kit.fifo("values")) as values:
                values.read()
        if self.name == "critic" and number % 3 == 0:
            time.sleep(4)
        return number


def main() -> None:
    kit.begin()
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=80_000_000)
    kit.mark("cluster", address=ray.get_runtime_context().gcs_address)
    policy, critic = (Stage.remote(name) for name in ("policy", "critic"))
    with InputNode() as batch:
        graph = critic.run.bind(policy.run.bind(batch))
    steps = graph.experimental_compile()
    for number in range(1, 10**6):
        ray.get(steps.execute(number), timeout=10**6)
        kit.step(number)


if __name__ == "__main__":
    main()
